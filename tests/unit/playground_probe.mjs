// What the playground's modules make of what a test hands over on standard input: one JSON document, one back.

import { readFileSync } from "node:fs";
import { criticalPath } from "../../playground/critical_path.mjs";
import { jobOf } from "../../playground/job.mjs";
import { packetsOf } from "../../playground/packets.mjs";
import { command, read, settled, write } from "../../playground/settings.mjs";

const asked = JSON.parse(readFileSync(0, "utf8"));
const answer = {
  jobs: asked.jobs.map(({ settings, mode, body_bytes: bytes }) => jobOf(settings, mode, bytes)),
  paths: asked.loads.map(({ record, page, path }) => criticalPath(record, page, path)),
  packets: asked.traces.map(packetsOf),
  addresses: asked.settings.map((settings) => read(write(settings))),
  settled: asked.settings.map(settled),
  commands: asked.settings.map(command),
  refused: asked.addresses.map(read),
};
process.stdout.write(JSON.stringify(answer));
