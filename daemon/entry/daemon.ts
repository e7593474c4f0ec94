// #entry/daemon: the daemon's program by the name under which commands find it, from source and from dist alike.
import "../main.ts";
