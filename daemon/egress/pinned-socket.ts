// A connection to the address that the egress guard has checked, for drivers that know the server by its name: what they ask of
// certificates (TLS's server name, the identity) stays the name's.
import net from "node:net";

/** An unconnected socket whose `connect(port, host)` goes to `address`, whatever the host. */
export function pinnedSocket(address: string): net.Socket {
  const socket = new net.Socket();
  const connect = socket.connect.bind(socket) as (port: number, host: string) => net.Socket;
  socket.connect = ((port: number | string) => connect(Number(port), address)) as typeof socket.connect;
  return socket;
}
