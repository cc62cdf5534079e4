// Preloaded into each process of a test run: notes its main file and its parent, by which the coverage of a
// process is that of a test file.
const fs = require('node:fs');
const path = require('node:path');
const directory = process.env.NODE_V8_COVERAGE;
if (directory) {
  try {
    fs.mkdirSync(directory, { recursive: true });
    const note = { main: process.argv[1], parent: process.ppid };
    fs.writeFileSync(path.join(directory, `main-${process.pid}.json`), JSON.stringify(note));
  } catch {
    // The process is then counted as unknown.
  }
}
