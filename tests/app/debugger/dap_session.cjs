// A whole session, driven by the client that VS Code's own authors test debug adapters with.
//   node dap_session.cjs PYTHON ADAPTER NETLIST OP_LINE LAST_LINE
const assert = require("node:assert");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const [python, adapter, netlist, opLine, lastLine] = process.argv.slice(2);

async function started() {
  const client = new DebugClient(python, adapter, "buda");
  client.defaultTimeout = 60000;
  await client.start();
  return client;
}

async function within(name, work) {
  const client = await started();
  try {
    await work(client);
    console.log(`ok ${name}`);
  } finally {
    await client.stop();
  }
}

const launch = { program: netlist, threads: 1 };

async function main() {
  await within("capabilities", async (client) => {
    const answer = await client.initializeRequest();
    assert.strictEqual(answer.body.supportsConfigurationDoneRequest, true);
    assert.strictEqual(answer.body.supportsStepBack, true);
  });

  await within("an unknown request fails", async (client) => {
    await client.initializeRequest();
    await assert.rejects(client.send("illegal_request"));
  });

  await within("runs to the end", async (client) => {
    await Promise.all([client.configurationSequence(), client.launch(launch), client.waitForEvent("terminated")]);
  });

  await within("stops on entry", async (client) => {
    await Promise.all([
      client.configurationSequence(),
      client.launch({ ...launch, stopOnEntry: true }),
      client.assertStoppedLocation("entry", { line: 1 }),
    ]);
  });

  await within("hits a breakpoint, steps, and goes back", async (client) => {
    await client.hitBreakpoint(launch, { path: netlist, line: Number(opLine) });
    const next = await client.stackTraceRequest({ threadId: 1 });
    assert.strictEqual(next.body.stackFrames[0].line, Number(opLine));
    await Promise.all([client.nextRequest({ threadId: 1 }), client.waitForEvent("stopped")]);
    const after = await client.stackTraceRequest({ threadId: 1 });
    assert.notStrictEqual(after.body.stackFrames[0].line, Number(opLine));
    await Promise.all([client.stepBackRequest({ threadId: 1 }), client.assertStoppedLocation("step", { line: Number(opLine) })]);
    const scopes = await client.scopesRequest({ frameId: next.body.stackFrames[0].id });
    for (const scope of scopes.body.scopes) {
      const below = await client.variablesRequest({ variablesReference: scope.variablesReference });
      assert.ok(below.body.variables.length > 0, scope.name);
    }
  });

  await within("a conditional breakpoint that does not hold is passed over", async (client) => {
    await Promise.all([
      client.waitForEvent("initialized").then(async () => {
        const answer = await client.setBreakpointsRequest({
          source: { path: netlist },
          breakpoints: [{ line: Number(opLine), condition: "$p_loop_count == 77" }, { line: Number(lastLine) }],
        });
        assert.deepStrictEqual(answer.body.breakpoints.map((one) => one.verified), [true, true]);
        await client.configurationDoneRequest();
      }),
      client.launch(launch),
      client.assertStoppedLocation("breakpoint", { line: Number(lastLine) }),
    ]);
  });

  await within("goes back to a breakpoint", async (client) => {
    await client.hitBreakpoint(launch, { path: netlist, line: Number(lastLine) });
    await client.setBreakpointsRequest({ source: { path: netlist }, breakpoints: [{ line: Number(opLine) }] });
    await Promise.all([
      client.reverseContinueRequest({ threadId: 1 }),
      client.assertStoppedLocation("breakpoint", { line: Number(opLine) }),
    ]);
  });

  await within("watches a queue", async (client) => {
    await Promise.all([
      client.configurationSequence(),
      client.launch({ ...launch, stopOnEntry: true }),
      client.waitForEvent("stopped"),
    ]);
    const info = await client.dataBreakpointInfoRequest({ name: "y" });
    await client.setDataBreakpointsRequest({ breakpoints: [{ dataId: info.body.dataId }] });
    await Promise.all([client.continueRequest({ threadId: 1 }), client.assertStoppedLocation("data breakpoint", {})]);
  });

  await within("tells log points and goes on", async (client) => {
    const output = client.waitForEvent("output");
    await Promise.all([
      client.waitForEvent("initialized").then(async () => {
        const breakpoints = [{ line: Number(opLine), logMessage: "absmax {absmax(op:h) > 0}" }];
        await client.setBreakpointsRequest({ source: { path: netlist }, breakpoints });
        await client.configurationDoneRequest();
      }),
      client.launch(launch),
      client.waitForEvent("terminated"),
    ]);
    assert.strictEqual((await output).body.output, "absmax 1\n");
  });

  await within("changes a tensor and its bytes", async (client) => {
    await client.hitBreakpoint(launch, { path: netlist, line: Number(opLine) });
    const changed = await client.customRequest("setExpression", { expression: "x[0]", value: "2" });
    assert.match(changed.body.value, /min 2, max 2/);
    const entry = await client.evaluateRequest({ expression: "x[0]", context: "watch" });
    const memoryReference = entry.body.memoryReference;
    const data = Buffer.from([0, 63]).toString("base64"); // 0.5 in Float16_b
    await client.customRequest("writeMemory", { memoryReference, offset: 16, data });
    const read = await client.customRequest("readMemory", { memoryReference, offset: 16, count: 2 });
    assert.strictEqual(read.body.data, data);
    const variablesReference = entry.body.variablesReference;
    const tile = await client.setVariableRequest({ variablesReference, name: "tile 0,0,0", value: "3" });
    assert.strictEqual(tile.body.value, "3 ... 3");
  });

  await within("evaluates", async (client) => {
    await client.hitBreakpoint(launch, { path: netlist, line: Number(lastLine) });
    const answer = await client.evaluateRequest({ expression: "absmax(x[0]) > 0", context: "watch" });
    assert.strictEqual(answer.body.result, "1");
    const told = await client.evaluateRequest({ expression: "where", context: "repl" });
    assert.match(told.body.result, /instruction/);
  });
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
