// SHA-256 of a file, piece by piece (FIPS 180-4). The browser's own takes only what is in memory as a whole, and only on
// pages that came over HTTPS.
(() => {
  "use strict";

  const STEP_BYTES = 4 << 20;
  const primes = [];
  for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime)) primes.push(n);
  const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
  const BEGIN = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
  const ROUNDS = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
  const w = new Int32Array(64);

  function mix(state, view, at) {
    for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const x = w[i - 15], y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let a = state[0], b = state[1], c = state[2], d = state[3];
    let e = state[4], f = state[5], g = state[6], h = state[7];
    for (let i = 0; i < 64; i += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0;
      d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    state[4] += e; state[5] += f; state[6] += g; state[7] += h;
  }

  function end(state, rest, size) {
    const last = new Uint8Array(rest.length < 56 ? 64 : 128);
    last.set(rest);
    last[rest.length] = 0x80;
    const view = new DataView(last.buffer);
    view.setBigUint64(last.length - 8, BigInt(size) * 8n);
    for (let at = 0; at < last.length; at += 64) mix(state, view, at);
  }

  // The digest in hexadecimal; ``read`` is told how many bytes are read. Fails as reading the file does, and when
  // ``signal`` is aborted.
  window.spinneySha256 = async (file, read, signal) => {
    const state = Int32Array.from(BEGIN);
    let rest = new Uint8Array();
    for (let from = 0; from < file.size; from += STEP_BYTES) {
      const bytes = new Uint8Array(await file.slice(from, from + STEP_BYTES).arrayBuffer());
      signal.throwIfAborted();
      const whole = bytes.length - (bytes.length % 64);  // only the last step has a rest
      const view = new DataView(bytes.buffer);
      for (let at = 0; at < whole; at += 64) mix(state, view, at);
      rest = bytes.subarray(whole);
      read(from + bytes.length);
    }
    end(state, rest, file.size);
    return [...state].map((value) => (value >>> 0).toString(16).padStart(8, "0")).join("");
  };
})();
