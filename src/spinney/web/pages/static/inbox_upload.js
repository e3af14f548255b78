// Uploads to an inbox go on: after a broken connection by themselves, and in a page that was closed when the same file is
// chosen again. Without this script the browser sends the form as any other.
(() => {
  "use strict";

  const form = document.querySelector("form[data-uploads]");
  if (!form || !window.spinneySha256) return;
  const find = (name) => document.querySelector(`[data-upload-${name}]`);
  const input = form.querySelector("input[type=file]");
  const [bar, words, statusLine, results, now] = ["bar", "words", "status", "results", "now"].map(find);
  const base = form.dataset.uploads;
  const PIECE_BYTES = Number(form.dataset.piece);
  const PAUSE_MOST_S = 30;
  const AWAY = "The server cannot be reached";
  const PASSING = [0, 408, 425, 429, 502, 503, 504, 507];  // what time may mend; 0: there is no answer

  class Failure extends Error {
    constructor(status, sentence) {
      super(sentence);
      this.status = status;
    }
  }

  // --- requests ------------------------------------------------------------------------------

  function ask(method, address, { body = null, type = "application/json", signal = null, sent = () => {} } = {}) {
    return new Promise((resolve, reject) => {
      const xhr = new XMLHttpRequest();
      const stop = () => xhr.abort();
      xhr.open(method, address);
      xhr.setRequestHeader("X-CSRF-Token", form.elements.csrf.value);
      if (body !== null) xhr.setRequestHeader("Content-Type", type);
      xhr.upload.onprogress = (event) => sent(event.loaded);
      xhr.onabort = () => reject(signal.reason);
      xhr.onerror = () => reject(new Failure(0, AWAY));
      xhr.onload = () => {
        let answer = null;
        try { answer = JSON.parse(xhr.responseText || "null"); } catch { /* something between here and the server */ }
        if (xhr.status < 300) resolve(answer);
        else reject(new Failure(xhr.status, answer?.detail || `The server responded with ${xhr.status}`));
      };
      xhr.onloadend = () => signal?.removeEventListener("abort", stop);
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener("abort", stop);
      xhr.send(body);
    });
  }

  function pause(seconds, signal) {
    return new Promise((resolve) => {
      const timer = setTimeout(done, 1000 * seconds);
      function done() {
        clearTimeout(timer);
        removeEventListener("online", done);
        signal.removeEventListener("abort", done);
        resolve();
      }
      addEventListener("online", done);
      signal.addEventListener("abort", done);
    });
  }

  // --- one file ------------------------------------------------------------------------------

  // A browser tells a file that was changed or removed while it is sent as a connection that broke.
  async function requireReadable(file, at) {
    try {
      await file.slice(at, at + 1).arrayBuffer();
    } catch {
      throw new Failure(-1, "The file has been changed or removed meanwhile; choose it again");
    }
  }

  class Sending {
    constructor(file, signal) {
      this.file = file;
      this.signal = signal;
      this.upload = null;
    }

    get own() {
      return `${base}/${this.upload.id}`;
    }

    // The upload that has its job.
    async toTheEnd() {
      const read = (bytes) => show("Reading", this.file, bytes);
      await requireReadable(this.file, 0);
      this.announced = await window.spinneySha256(this.file, read, this.signal);
      let failed = 0, most = -1;
      for (;;) {
        try {
          await this.#look();
          if (this.upload.received > most) failed = 0;
          most = Math.max(most, this.upload.received);
          while (!this.isDone) await this.#piece();
          return this.upload;
        } catch (error) {
          this.signal.throwIfAborted();
          if (!PASSING.includes(error.status)) throw error;
          await requireReadable(this.file, this.upload?.received ?? 0);
          failed += 1;
          const seconds = Math.min(PAUSE_MOST_S, 2 ** (failed - 1));
          const why = error.message[0].toUpperCase() + error.message.slice(1);
          tell(`${why}. It is tried again in ${seconds} s, and goes on where it stopped.`);
          await pause(seconds * (0.75 + Math.random() / 2), this.signal);
          this.signal.throwIfAborted();
        }
      }
    }

    get isDone() {
      if (this.upload.reason) throw new Failure(409, this.upload.reason);
      return this.upload.job_id !== null;
    }

    async #look() {
      const { name, size } = this.file;
      const body = JSON.stringify({ name, size, announced: this.announced });
      const { signal } = this;
      this.upload = this.upload ? await ask("GET", this.own, { signal }) : await ask("POST", base, { body, signal });
      show("Sending", this.file, this.upload.received);
      tell("");
    }

    async #piece() {
      const { file, signal } = this, from = this.upload.received;
      const body = file.slice(from, from + PIECE_BYTES);
      const sent = (bytes) => show("Sending", file, from + Math.min(bytes, body.size));
      try {
        const type = "application/octet-stream";
        this.upload = await ask("PUT", `${this.own}?offset=${from}`, { body, type, signal, sent });
      } catch (error) {
        if (error.status !== 409) throw error;
        await this.#look();  // an answer may have been lost, and more be there than was known here
        if (!this.isDone && this.upload.received === from) throw error;
      }
      show("Sending", file, this.upload.received);
    }

    async withdraw() {
      for (let failed = 0; this.upload; failed += 1) {
        try {
          return await ask("DELETE", this.own);
        } catch (error) {
          if (error.status === 404) return;
          if (!PASSING.includes(error.status) || failed >= 5) throw error;
          await pause(2 ** failed / 4, new AbortController().signal);  // its last request may not have ended yet
        }
      }
    }
  }

  // --- what is shown -------------------------------------------------------------------------

  const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

  function length(bytes) {
    const unit = Math.min(UNITS.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
    return `${unit ? (bytes / 1000 ** unit).toFixed(1) : bytes} ${UNITS[unit]}`;
  }

  function show(verb, file, bytes) {
    words.textContent = `${verb} ${file.name}: ${length(bytes)} of ${length(file.size)}`;
    bar.value = file.size ? bytes / file.size : 1;
  }

  // For who hears the page, too; what changes with each piece is not told here.
  function tell(sentence) {
    if (statusLine.textContent !== sentence) statusLine.textContent = sentence;
  }

  function result(file, sentence, jobId = null) {
    const line = document.createElement("li");
    const name = document.createElement("b");
    const text = document.createElement("span");
    name.className = text.className = "break";
    name.textContent = file.name;
    text.textContent = sentence;
    if (jobId !== null) {
      const link = document.createElement("a");
      link.href = `/jobs/${jobId}`;
      link.textContent = `job ${jobId}`;
      text.append(link);
    } else line.className = "refused";
    line.append(name, text);
    results.append(line);
  }

  function busy(state) {
    now.hidden = !state;
    for (const part of document.querySelectorAll("[data-upload-open]")) part.hidden = state;
    for (const button of form.querySelectorAll("button[type=submit]")) {
      if (state) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
  }

  // --- all files of the form -----------------------------------------------------------------

  let stop = null;

  // Returns its job; null: there is none.
  async function send(file) {
    stop = new AbortController();
    const sending = new Sending(file, stop.signal);
    try {
      const { job_id: jobId } = await sending.toTheEnd();
      result(file, "became ", jobId);
      return jobId;
    } catch (error) {
      if (error.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
      if (!stop.signal.aborted) return result(file, error.message), null;
    }
    try {
      await sending.withdraw();
      result(file, "The upload was withdrawn");
    } catch (error) {
      result(file, error.message);
    }
    return null;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    event.stopPropagation();  // else it counts as sent, and is not sent again
    if (!now.hidden) return;
    const files = [...input.files], left = new DataTransfer();
    const jobs = [];
    results.replaceChildren();
    busy(true);
    find("cancel").focus();
    for (const file of files) {
      const job = await send(file);
      tell("");
      if (job === null) left.items.add(file);
      else jobs.push(job);
    }
    if (files.length === 1 && jobs.length === 1) return location.assign(`/jobs/${jobs[0]}`);
    input.files = left.files;  // what has failed may be tried once more
    busy(false);
    tell(`${jobs.length} of ${files.length} uploaded`);
    results.focus();
  });
  find("cancel").addEventListener("click", () => stop?.abort());
})();
