// The two error documents that most answers have: problem+json (RFC 9457) and OpenAI's.
import { Type } from "typebox";

export const Problem = Type.Object(
  {
    type: Type.String({ format: "uri", description: "The error's page; stable." }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    instance: Type.String(),
    code: Type.String({ description: "Stable; see /docs/errors.", examples: ["validation_failed"] }),
    request_id: Type.String(),
    retryable: Type.Boolean({ description: "True where the same request may pass later." }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          pointer: Type.String({ description: "A JSON pointer (RFC 6901) into the body or the query." }),
          code: Type.String(),
          detail: Type.String(),
        }),
      ),
    ),
  },
  { description: "RFC 9457; some codes have more members." },
);

export const OpenAiError = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()]),
      code: Type.Union([Type.String(), Type.Null()]),
    }),
  },
  { description: "An error in OpenAI's form." },
);
