// Turns the coverage that V8 left for each process of a test run into lines of each test file.
//
// Arguments: the directory of the recording, the directory of V8's files, the directory of the project.
const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const [recording, raw, project] = process.argv.slice(1);
const PIECE_BYTES = 8 << 20;
const PIECES = 'abcdefgh';
const MAX_PROCESSES = 2000;

const gaps = new Map();
const gap = (text) => gaps.set(text, (gaps.get(text) ?? 0) + 1);
const clean = (text) => String(text).replace(/[\t\r\n]/g, ' ');
const readJson = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));

const names = fs.existsSync(raw) ? fs.readdirSync(raw).sort() : [];
const mains = new Map();
for (const name of names) {
  const match = /^main-(\d+)\.json$/.exec(name);
  if (match) mains.set(Number(match[1]), readJson(path.join(raw, name)));
}

// A process that a test started belongs to the file of that test. The outermost one is the runner, which loads
// no tests unless it isolates none.
function testFile(pid) {
  let file;
  for (let at = pid, left = 32; mains.has(at) && left > 0; left -= 1) {
    const { main, parent } = mains.get(at);
    if (main && !main.includes('node_modules') && isInside(main)) file = main;
    at = parent;
  }
  return file;
}

function isInside(file) {
  const below = path.relative(project, file);
  return below !== '' && !below.startsWith('..') && !path.isAbsolute(below) && !below.split(path.sep).includes('node_modules');
}

// Offsets of V8 are UTF-16 code units, as those of strings here. Empty lines and comments run no code.
const sources = new Map();
function linesOf(file) {
  if (!sources.has(file)) {
    const lines = [];
    let start = 0;
    for (const text of fs.readFileSync(file, 'utf8').split('\n')) {
      const body = text.trim();
      const first = start + text.length - text.trimStart().length;
      if (body !== '' && !body.startsWith('//')) lines.push({ number: lines.length + 1, start: first, end: first + body.length });
      else lines.push(undefined);
      start += text.length + 1;
    }
    sources.set(file, lines.filter(Boolean));
  }
  return sources.get(file);
}

// Ranges nest, from the outside to the inside, so the last one that holds a line decides about it. Lines in no
// function of their own belong to the module, which runs once when it is loaded.
function hitsOf(script, lines) {
  const hits = new Map();
  for (const { ranges } of script.functions) {
    for (const range of ranges) {
      for (const line of lines) {
        if (line.start >= range.startOffset && line.end <= range.endOffset) hits.set(line.number, range.count);
      }
    }
  }
  return hits;
}

const tests = new Map();
function add(script, test, mapped) {
  if (!script.url.startsWith('file://')) return;
  const file = fileURLToPath(script.url);
  if (!isInside(file) || !fs.existsSync(file)) return;
  if (mapped?.[script.url]) return gap('a compiled file is not mapped to its source');
  const files = tests.get(test) ?? tests.set(test, new Map()).get(test);
  const all = files.get(file) ?? files.set(file, new Map()).get(file);
  for (const [line, count] of hitsOf(script, linesOf(file))) {
    if (count > 0) all.set(line, (all.get(line) ?? 0) + count);
  }
}

const processes = names.filter((name) => name.startsWith('coverage-'));
for (const name of processes.slice(0, MAX_PROCESSES)) {
  const test = testFile(Number(name.split('-')[1]));
  try {
    const { result, 'source-map-cache': mapped } = readJson(path.join(raw, name));
    if (test) for (const script of result) add(script, test, mapped);
  } catch (error) {
    gap(`a file of V8 could not be read: ${error.message}`);
  }
}
if (processes.length > MAX_PROCESSES) gap(`${processes.length - MAX_PROCESSES} processes are beyond the limit of ${MAX_PROCESSES}`);

const rows = [];
for (const [test, files] of [...tests].sort(([a], [b]) => (a < b ? -1 : 1))) {
  rows.push(`U\t${clean(path.relative(project, test))}\t(all tests of the file)`);
  for (const [file, hits] of files) {
    const lines = [...hits].sort(([a], [b]) => a - b).map(([line, count]) => `${line}-${line}:${count}`);
    if (lines.length > 0) rows.push(`F\t${clean(file)}`, `H\t${lines.join(',')}`);
  }
}
for (const [text, count] of gaps) rows.push(`!\t${clean(text)}${count > 1 ? ` (${count} times)` : ''}`);
rows.push('E\n');
const whole = Buffer.from(rows.join('\n'));
for (let number = 0; number < PIECES.length && number * PIECE_BYTES < whole.length; number += 1) {
  const piece = whole.subarray(number * PIECE_BYTES, (number + 1) * PIECE_BYTES);
  fs.writeFileSync(path.join(recording, `coverage.${PIECES[number]}`), piece);
}
fs.rmSync(raw, { recursive: true, force: true });
