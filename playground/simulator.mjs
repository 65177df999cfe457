// The simulator as WebAssembly: crates/playground/src/exports.rs. Text in, text out.

const ANSWER_BYTES = 5;
const NO_SUCH_FILE = 8;

export class Simulator {
  #module;
  #exports;
  #said = "";
  #pages = new Map();

  // `bytes`: the module.
  static async from(bytes) {
    const simulator = new Simulator();
    simulator.#module = await WebAssembly.compile(bytes);
    return simulator;
  }

  // One load of a page under a scheme: the text of its record, and the lines of the first `packets` packets that a
  // connection sends.
  load(scheme, profile, job, connection = 0, packets = 0) {
    try {
      const page = this.#prepared(scheme, profile);
      const answer = this.#call(JSON.stringify(job), (at, bytes) => this.#exports.load(page, connection, packets, at, bytes));
      const [record, ...lines] = answer.split("\n");
      return { record, lines };
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      // A defect of the simulator: its memory may be in any state.
      this.#exports = undefined;
      throw new Error(`the simulator broke off: ${this.#said.trim() || error.message}. hint: please report this as a bug`);
    }
  }

  #prepared(scheme, profile) {
    if (!this.#exports) this.#start();
    const key = `${scheme}\n${profile}`;
    if (!this.#pages.has(key)) {
      const number = this.#call(key, (at, bytes) => this.#exports.prepare(at, bytes));
      this.#pages.set(key, Number(number));
    }
    return this.#pages.get(key);
  }

  #start() {
    this.#said = "";
    this.#pages.clear();
    this.#exports = new WebAssembly.Instance(this.#module, { wasi_snapshot_preview1: this.#system() }).exports;
    this.#exports._initialize?.();
  }

  #call(text, called) {
    const { allocate, release, memory } = this.#exports;
    const bytes = new TextEncoder().encode(text);
    const at = allocate(bytes.length);
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
    const answer = called(at, bytes.length);
    release(at, bytes.length);
    const header = new DataView(memory.buffer, answer, ANSWER_BYTES);
    const [isError, length] = [header.getUint8(0) === 1, header.getUint32(1, true)];
    const said = new TextDecoder().decode(new Uint8Array(memory.buffer, answer + ANSWER_BYTES, length));
    release(answer, ANSWER_BYTES + length);
    if (isError) throw new Error(said);
    return said;
  }

  // What the module asks an operating system for (WASI): a clock that stands still, random numbers that no result
  // depends on, an empty environment, and where a panic is written.
  #system() {
    const view = () => new DataView(this.#exports.memory.buffer);
    const bytes = (at, length) => new Uint8Array(this.#exports.memory.buffer, at, length);
    return {
      clock_time_get: (clock, precision, at) => (view().setBigUint64(at, 1_000_000_000_000_000n, true), 0),
      random_get: (at, length) => (crypto.getRandomValues(bytes(at, length)), 0),
      environ_sizes_get: (count, size) => (view().setUint32(count, 0, true), view().setUint32(size, 0, true), 0),
      environ_get: () => 0,
      fd_write: (file, parts, count, written) => {
        let total = 0;
        for (let part = 0; part < count; part += 1) {
          const [at, length] = [view().getUint32(parts + 8 * part, true), view().getUint32(parts + 8 * part + 4, true)];
          this.#said += new TextDecoder().decode(bytes(at, length));
          total += length;
        }
        view().setUint32(written, total, true);
        return 0;
      },
      fd_close: () => NO_SUCH_FILE,
      fd_seek: () => NO_SUCH_FILE,
      fd_fdstat_get: () => NO_SUCH_FILE,
      fd_prestat_get: () => NO_SUCH_FILE,
      fd_prestat_dir_name: () => NO_SUCH_FILE,
      sched_yield: () => 0,
      proc_exit: (code) => { throw new WebAssembly.RuntimeError(`exit ${code}`); },
    };
  }
}
