// graphile-worker on PostgreSQL: one Node process, with the local queue and the batched completion of its page on
// performance. The verbs are described in peer_program.py.

import fs from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";

const require = createRequire(`${process.env.PEER_MODULES}/`);
const { Logger, makeWorkerUtils, run } = require("graphile-worker");

const TEXT = "0".repeat(36);
const connectionString = process.env.PEER_STORE;
const logger = new Logger(() => () => {});
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
// Numbers of nanoseconds are larger than what a double holds exactly: tags are strings here.
const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;

let log;
async function job({ tag, seconds }) {
  const began = now();
  if (seconds) await sleep(seconds);
  log ??= fs.openSync(process.env.PEER_LOG, "a");
  const record = Buffer.alloc(24);
  record.writeBigInt64LE(BigInt(tag), 0);
  record.writeBigInt64LE(began, 8);
  record.writeBigInt64LE(now(), 16);
  fs.writeSync(log, record);
}

async function work(what) {
  const drain = what === "drain";
  const concurrentJobs = drain ? 24 : Number(what);
  const worker = drain ? { concurrentJobs, localQueue: { size: 500 }, completeJobBatchDelay: 0 } : { concurrentJobs };
  const runner = await run({ logger, preset: { worker: { connectionString, ...worker } }, taskList: { job } });
  await runner.promise;
}

async function answer(utils, [verb, count, seconds, tag]) {
  if (verb === "left")
    return utils.withPgClient(async (client) => {
      return (await client.query("select count(*) as n from graphile_worker._private_jobs")).rows[0].n;
    });
  if (verb === "bulk") {
    const payload = { tag, seconds: Number(seconds), text: TEXT };
    const began = performance.now();
    await utils.addJobs(Array.from({ length: Number(count) }, () => ({ identifier: "job", payload })));
    return (performance.now() - began) / 1000;
  }
  for (let n = 0; n < Number(count); n++) {
    await utils.addJob("job", { tag: String(now()), seconds: 0, text: TEXT });
    await sleep(Number(seconds));
  }
  return 0;
}

const [verb, what] = process.argv.slice(2);
if (verb === "versions") {
  const about = fs.readFileSync(`${process.env.PEER_MODULES}/node_modules/graphile-worker/package.json`);
  const { version } = JSON.parse(about);
  console.log(JSON.stringify({ "graphile-worker": version, node: process.versions.node }));
} else if (verb === "work") {
  await work(what);
} else {
  const utils = await makeWorkerUtils({ connectionString, logger });
  if (verb === "prepare") await utils.migrate();
  else
    for await (const line of readline.createInterface({ input: process.stdin }))
      console.log(await answer(utils, line.split(" ")));
  await utils.release();
}
