// The TypeScript SDK of the 1.x line, which most agents of today are built with: it holds answers, and errors
// too, against the schema of their tool. Prints what it saw as JSON.
//
//     typescript.mjs SDK JOB TARGET…     TARGET: an address, or a program and its arguments
//
// With the id of a job it is a second client, which has read nothing and started nothing.

const [sdk, job, ...target] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);

async function transport() {
  if (target[0].startsWith('http://')) {
    const { StreamableHTTPClientTransport } = await import(`${sdk}/dist/esm/client/streamableHttp.js`);
    const headers = { Authorization: process.env.CARREL_AUTHORIZATION };
    return new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } });
  }
  const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);
  return new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
}

const client = new Client({ name: 'carrel-test', version: '1.0.0' });
await client.connect(await transport());
if (job) {
  const steal = (name, args) => client.callTool({ name, arguments: args });
  const shell_id = job;
  const tried = {
    edit: await steal('Edit', { file_path: 'basket.js', old_string: 'length', new_string: 'stolen' }),
    output: await steal('BashOutput', { shell_id }),
    kill: await steal('KillShell', { shell_id }),
  };
  await client.close();
  console.log(JSON.stringify(tried));
  process.exit(0);
}
const { tools } = await client.listTools();
const call = (name, args) => client.callTool({ name, arguments: args });
const progress = [];
const seen = {
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  read: await call('Read', { file_path: 'basket.js' }),
  edit: await call('Edit', { file_path: 'basket.js', old_string: 'length', new_string: 'size' }),
  missing: await call('Read', { file_path: 'no/such/file' }),
  long: await client.callTool({ name: 'Bash', arguments: { command: 'sleep 1.5; echo over' } }, undefined, {
    onprogress: (news) => progress.push(news.message),
  }),
};
seen.progress = progress;
await client.close();
console.log(JSON.stringify(seen));
