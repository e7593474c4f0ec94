// The syntax tree of a template.

export type Expression =
  | { readonly kind: "constant"; readonly value: string | number | bigint | boolean | null; readonly float?: boolean }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "list" | "tuple"; readonly items: readonly Expression[] }
  | { readonly kind: "dict"; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: "attribute"; readonly object: Expression; readonly name: string }
  | { readonly kind: "item"; readonly object: Expression; readonly key: Expression }
  | { readonly kind: "slice"; readonly object: Expression; readonly parts: readonly (Expression | undefined)[] }
  | { readonly kind: "call"; readonly callee: Expression; readonly arguments: Arguments }
  | {
      readonly kind: "filter";
      readonly name: string;
      readonly input: Expression | undefined;
      readonly arguments: Arguments;
    }
  | {
      readonly kind: "test";
      readonly name: string;
      readonly input: Expression;
      readonly arguments: Arguments;
      readonly negated: boolean;
    }
  | { readonly kind: "unary"; readonly operator: "not" | "-" | "+"; readonly operand: Expression }
  | { readonly kind: "binary"; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | { readonly kind: "concat"; readonly parts: readonly Expression[] }
  | { readonly kind: "compare"; readonly first: Expression; readonly rest: readonly (readonly [string, Expression])[] }
  | {
      readonly kind: "condition";
      readonly test: Expression;
      readonly value: Expression;
      readonly otherwise: Expression | undefined;
    };

export interface Arguments {
  readonly positional: readonly Expression[];
  readonly named: ReadonlyMap<string, Expression>;
}

export type Statement =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly expression: Expression }
  | {
      readonly kind: "if";
      readonly branches: readonly (readonly [Expression, readonly Statement[]])[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "for";
      readonly targets: readonly string[];
      readonly over: Expression;
      readonly filter: Expression | undefined;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "set";
      readonly targets: readonly string[];
      readonly attribute: string | undefined;
      readonly value: Expression;
    }
  | { readonly kind: "capture"; readonly target: string; readonly body: readonly Statement[] }
  | {
      readonly kind: "with";
      readonly bindings: readonly (readonly [string, Expression])[];
      readonly body: readonly Statement[];
    };
