// What an embeddings request may hold: OpenAI's specification, "Create embeddings". The providers judge the rest.
import Type from "typebox";

export const EmbeddingRequest = Type.Object({
  model: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  input: Type.Union([
    Type.String(),
    Type.Array(Type.String()),
    Type.Array(Type.Integer()),
    Type.Array(Type.Array(Type.Integer())),
  ]),
  encoding_format: Type.Optional(Type.Enum(["float", "base64"])),
  dimensions: Type.Optional(Type.Integer({ minimum: 1 })),
  user: Type.Optional(Type.String()),
});
