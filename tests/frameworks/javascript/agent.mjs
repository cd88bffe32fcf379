// Agents on the OpenAI Agents SDK: argument 1 says which, argument 2 whether its client is instrumented as well.
import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai';
import { OpenAIAgentsInstrumentation } from '@arizeai/openinference-instrumentation-openai-agents';
import * as agents from '@openai/agents';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import OpenAI from 'openai';
import { z } from 'zod';

const exporter = new OTLPTraceExporter({ url: `${process.env.OTLP_URL}/v1/traces` });
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
provider.register();
new OpenAIAgentsInstrumentation({ tracerProvider: provider }).manuallyInstrument(agents);
if (process.argv[3] === 'both') new OpenAIInstrumentation({ tracerProvider: provider }).manuallyInstrument(OpenAI);

const model = new agents.OpenAIChatCompletionsModel(
  new OpenAI({ baseURL: `${process.env.MODEL_URL}/v1`, apiKey: 'none' }),
  'gpt-4o-mini',
);
const tools = [
  agents.tool({
    name: 'search_orders',
    description: 'Search orders.',
    parameters: z.object({ customer_id: z.string() }),
    execute: async ({ customer_id }) => `no orders of ${customer_id}`,
  }),
];
const support = new agents.Agent({ name: 'support-bot', model, tools });
const triage = new agents.Agent({ name: 'triage', model, handoffs: [support] });

const started = process.argv[2] === 'handoff' ? triage : support;
const { finalOutput } = await agents.run(started, 'Where are my orders?', { maxTurns: 20 });
console.log(finalOutput);
await provider.shutdown();
