// The catalogue.
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
