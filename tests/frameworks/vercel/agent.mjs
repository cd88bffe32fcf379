// An agent on the Vercel AI SDK: argument 1 says whether it streams. It prints its answer.
import { createOpenAI } from '@ai-sdk/openai';
import { OpenTelemetry } from '@ai-sdk/otel';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { NodeTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { generateText, registerTelemetry, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const exporter = new OTLPTraceExporter({ url: `${process.env.OTLP_URL}/v1/traces` });
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
provider.register();
registerTelemetry(new OpenTelemetry());

const openai = createOpenAI({ baseURL: `${process.env.MODEL_URL}/v1`, apiKey: 'none' });
const options = {
  model: openai.chat('gpt-4o-mini'),
  prompt: 'Where are my orders?',
  telemetry: { isEnabled: true, functionId: 'support-bot' },
  stopWhen: stepCountIs(20),
  tools: {
    search_orders: tool({
      description: 'Search orders.',
      inputSchema: z.object({ customer_id: z.string() }),
      execute: async ({ customer_id }) => `no orders of ${customer_id}`,
    }),
  },
};

if (process.argv[2] === 'stream') {
  console.log(await streamText(options).text);
} else {
  console.log((await generateText(options)).text);
}
await provider.forceFlush();
await provider.shutdown();
