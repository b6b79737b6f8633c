// Runs the command in a thread of its own, so that the page stays alive and a long proof can be stopped.

import { run } from "./wasi.js";

let compiled;

self.onmessage = async ({ data: { id, args, files } }) => {
  try {
    compiled ??= WebAssembly.compileStreaming(fetch("tilewright.wasm"));
    const started = performance.now();
    const variables = { TILEWRIGHT_CACHE: "off", NO_COLOR: "1" };
    const result = await run(await compiled, args, files, variables);
    self.postMessage({ id, ...result, milliseconds: performance.now() - started });
  } catch (error) {
    compiled = undefined;
    self.postMessage({ id, code: -1, output: "", errors: `${error}`, files: {}, milliseconds: 0 });
  }
};
