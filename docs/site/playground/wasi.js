// What a command of WebAssembly asks of its system (WASI preview 1): arguments, a clock, random numbers, and
// files, which are kept in memory. Whatever else is asked for is refused as not supported.

const OK = 0, BADF = 8, EXIST = 20, INVAL = 28, ISDIR = 31, NOENT = 44, NOSYS = 52, NOTDIR = 54;
const DEVICE = 2, FOLDER = 3, FILE = 4;
const CREATE = 1, WANTS_FOLDER = 2, EXCLUSIVE = 4, TRUNCATE = 8;
const ROOT = 3;

class Exit extends Error {
  constructor(code) {
    super(`exit ${code}`);
    this.code = code;
  }
}

/** Bytes that grow as they are written. */
class Content {
  constructor(bytes) {
    this.bytes = bytes;
    this.size = bytes.length;
  }

  view() {
    return this.bytes.subarray(0, this.size);
  }

  write(at, bytes) {
    const end = at + bytes.length;
    if (end > this.bytes.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.bytes.length));
      larger.set(this.view());
      this.bytes = larger;
    }
    this.bytes.set(bytes, at);
    this.size = Math.max(this.size, end);
  }
}

/** A path from the root without empty parts, `.` and `..`. */
function plain(path) {
  const parts = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/**
 * Runs a compiled module once.
 *
 * `args` are its arguments, the command's name first; `files` an object from paths to `Uint8Array`s or strings.
 * Returns the exit code, what was written to standard output and error, and all files there are then. An exit code
 * of -1 is a crash, and the error text says which.
 */
export async function run(module, args, files = {}, variables = {}) {
  const encoder = new TextEncoder(), decoder = new TextDecoder();
  const bytes = (content) => (typeof content === "string" ? encoder.encode(content) : content);
  const kept = new Map(Object.entries(files).map(([path, c]) => [plain(path), new Content(bytes(c).slice())]));
  const printed = [1, 2].map(() => new Content(new Uint8Array()));
  const open = new Map([
    [0, { kind: DEVICE, content: new Content(new Uint8Array()), at: 0 }],
    [1, { kind: DEVICE, content: printed[0], at: 0 }],
    [2, { kind: DEVICE, content: printed[1], at: 0 }],
    [ROOT, { kind: FOLDER, path: "" }],
  ]);
  let next = ROOT + 1;
  let memory;

  const view = () => new DataView(memory.buffer);
  const slice = (at, length) => new Uint8Array(memory.buffer, at, length);
  const text = (at, length) => decoder.decode(slice(at, length));
  const vectors = (at, count) =>
    Array.from({ length: count }, (_, i) =>
      slice(view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true)));
  const isFolder = (path) => path === "" || [...kept.keys()].some((p) => p.startsWith(`${path}/`));
  const resolve = (fd, at, length) => plain(`${open.get(fd)?.path ?? ""}/${text(at, length)}`);

  const strings = (list, pointers, buffer) => {
    for (const s of list) {
      view().setUint32(pointers, buffer, true);
      const encoded = encoder.encode(`${s}\0`);
      slice(buffer, encoded.length).set(encoded);
      pointers += 4;
      buffer += encoded.length;
    }
    return OK;
  };
  const sizes = (list, count, size) => {
    view().setUint32(count, list.length, true);
    view().setUint32(size, list.reduce((n, s) => n + encoder.encode(s).length + 1, 0), true);
    return OK;
  };
  const status = (at, kind, size) => {
    slice(at, 64).fill(0);
    view().setUint8(at + 16, kind);
    view().setBigUint64(at + 24, 1n, true);
    view().setBigUint64(at + 32, BigInt(size), true);
    return OK;
  };
  const environment = Object.entries(variables).map(([name, value]) => `${name}=${value}`);

  const system = {
    args_sizes_get: (count, size) => sizes(args, count, size),
    args_get: (pointers, buffer) => strings(args, pointers, buffer),
    environ_sizes_get: (count, size) => sizes(environment, count, size),
    environ_get: (pointers, buffer) => strings(environment, pointers, buffer),
    clock_res_get(_, at) {
      view().setBigUint64(at, 1000n, true);
      return OK;
    },
    clock_time_get(clock, _, at) {
      const now = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(now * 1e6)), true);
      return OK;
    },
    random_get(at, length) {
      // A call gives at most 64 KiB.
      for (let from = 0; from < length; from += 65536) {
        crypto.getRandomValues(slice(at + from, Math.min(65536, length - from)));
      }
      return OK;
    },
    sched_yield: () => OK,
    proc_exit(code) {
      throw new Exit(code);
    },
    fd_prestat_get(fd, at) {
      if (fd !== ROOT) return BADF;
      view().setUint32(at, 0, true);
      view().setUint32(at + 4, 1, true);
      return OK;
    },
    fd_prestat_dir_name(fd, at, length) {
      if (fd !== ROOT || length < 1) return BADF;
      slice(at, 1).set(encoder.encode("/"));
      return OK;
    },
    fd_fdstat_get(fd, at) {
      const entry = open.get(fd);
      if (!entry) return BADF;
      slice(at, 24).fill(0);
      view().setUint8(at, entry.kind);
      view().setBigUint64(at + 8, ~0n, true);
      view().setBigUint64(at + 16, ~0n, true);
      return OK;
    },
    fd_fdstat_set_flags: () => OK,
    fd_filestat_get(fd, at) {
      const entry = open.get(fd);
      return entry ? status(at, entry.kind, entry.content?.size ?? 0) : BADF;
    },
    path_filestat_get(fd, _, path, length, at) {
      const name = resolve(fd, path, length);
      const content = kept.get(name);
      if (content) return status(at, FILE, content.size);
      return isFolder(name) ? status(at, FOLDER, 0) : NOENT;
    },
    path_open(fd, _, path, length, how, _rights, _inherited, _flags, at) {
      const name = resolve(fd, path, length);
      let entry;
      if (kept.has(name)) {
        if (how & WANTS_FOLDER) return NOTDIR;
        if (how & EXCLUSIVE) return EXIST;
        entry = { kind: FILE, content: kept.get(name), at: 0 };
        if (how & TRUNCATE) entry.content.size = 0;
      } else if (isFolder(name)) {
        if (how & CREATE) return ISDIR;
        entry = { kind: FOLDER, path: name };
      } else if (how & CREATE) {
        entry = { kind: FILE, content: new Content(new Uint8Array()), at: 0 };
        kept.set(name, entry.content);
      } else {
        return NOENT;
      }
      open.set(next, entry);
      view().setUint32(at, next++, true);
      return OK;
    },
    path_create_directory: () => OK,
    path_unlink_file: (fd, path, length) => (kept.delete(resolve(fd, path, length)) ? OK : NOENT),
    path_rename(fd, from, fromLength, toFd, to, toLength) {
      const old = resolve(fd, from, fromLength);
      if (!kept.has(old)) return NOENT;
      kept.set(resolve(toFd, to, toLength), kept.get(old));
      kept.delete(old);
      return OK;
    },
    fd_read(fd, at, count, result) {
      const entry = open.get(fd);
      if (!entry?.content) return entry ? ISDIR : BADF;
      let total = 0;
      for (const target of vectors(at, count)) {
        const part = entry.content.view().subarray(entry.at, entry.at + target.length);
        target.set(part);
        entry.at += part.length;
        total += part.length;
      }
      view().setUint32(result, total, true);
      return OK;
    },
    fd_write(fd, at, count, result) {
      const entry = open.get(fd);
      if (!entry?.content) return entry ? ISDIR : BADF;
      let total = 0;
      for (const source of vectors(at, count)) {
        entry.content.write(entry.at, source);
        entry.at += source.length;
        total += source.length;
      }
      view().setUint32(result, total, true);
      return OK;
    },
    fd_seek(fd, offset, whence, result) {
      const entry = open.get(fd);
      if (!entry?.content) return BADF;
      const from = [0, entry.at, entry.content.size][whence];
      const to = (from ?? NaN) + Number(offset);
      if (!(to >= 0)) return INVAL;
      entry.at = to;
      view().setBigUint64(result, BigInt(to), true);
      return OK;
    },
    fd_tell(fd, result) {
      const entry = open.get(fd);
      if (!entry?.content) return BADF;
      view().setBigUint64(result, BigInt(entry.at), true);
      return OK;
    },
    fd_close: (fd) => (open.delete(fd) ? OK : BADF),
    fd_sync: () => OK,
    fd_datasync: () => OK,
  };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = system[name] ?? (() => NOSYS);
  }

  let code = 0;
  let crash = "";
  try {
    const instance = await WebAssembly.instantiate(module, imports);
    memory = instance.exports.memory;
    instance.exports._start();
  } catch (error) {
    code = error instanceof Exit ? error.code : -1;
    if (code === -1) crash = `${error}\n`;
  }
  const [output, errors] = printed.map((content) => decoder.decode(content.view()));
  const left = Object.fromEntries([...kept].map(([path, content]) => [path, content.view()]));
  return { code, output, errors: errors + crash, files: left };
}
