// Times of BullMQ: one job after the other, then many at once. Prints them as JSON.
import { createRequire } from 'node:module';
import { once } from 'node:events';

const require = createRequire(process.env.PEERS + '/');
const { Queue, Worker } = require('bullmq');

const [rounds, all, submitters] = process.argv.slice(2).map(Number);
const url = new URL(process.env.REDIS_URL);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const queue = new Queue('bench', { connection });
const worker = new Worker('bench', async () => {}, { connection, concurrency: 10 });
await worker.waitUntilReady();

const micros = [];
for (let round = 0; round < rounds; round++) {
  const done = once(worker, 'completed');
  const begun = process.hrtime.bigint();
  await queue.add('nothing', { round });
  await done;
  micros.push(Number(process.hrtime.bigint() - begun) / 1000);
}

let left = all;
const finished = new Promise((resolve) => worker.on('completed', () => --left === 0 && resolve()));
const begun = process.hrtime.bigint();
const submit = async () => {
  for (let job = 0; job < all / submitters; job++) await queue.add('nothing', { job });
};
await Promise.all(Array.from({ length: submitters }, submit));
await finished;
const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
process.stdout.write(JSON.stringify({ micros, per_second: all / seconds }) + '\n');
process.exit(0);
