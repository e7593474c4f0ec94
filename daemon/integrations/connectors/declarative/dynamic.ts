// Streams that a manifest only has a template for: made from the vendor's answer, from the configuration, or from a list.
import { parse } from "yaml";
import {
  type Context,
  condition,
  emptySlice,
  native,
  type Slice,
  sliceVariables,
  text,
  type Variables,
} from "./context.ts";
import {
  type Component,
  child,
  children,
  isRecord,
  list,
  manifestError,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "./manifest/component.ts";
import { handDown } from "./manifest/resolve.ts";
import { copyOf, dpathOne, replaceAt, setAt } from "./read/dpath.ts";
import { partitionsOf, type ReadParent, routersOf } from "./read/partition.ts";
import { lookupOf } from "./read/retrieve.ts";
import { streamOf } from "./stream.ts";

const MAX_STREAMS = 10_000;

/** What one stream is made of, and the slice in which the vendor named it. */
interface Source {
  readonly values: Readonly<Record<string, unknown>>;
  readonly slice: Slice;
}

export async function dynamicStreams(context: Context, manifest: Component): Promise<Component[]> {
  const streams: Component[] = [];
  for (const template of children(manifest, "dynamic_streams")) {
    for await (const source of sources(context, child(template, "components_resolver"))) {
      if (streams.length >= MAX_STREAMS) throw manifestError(`dynamic_streams make more than ${MAX_STREAMS} streams`);
      // What references stand for is one value in many places: here each becomes its own.
      const stream = copyOf<Record<string, unknown>>(child(template, "stream_template"));
      const variables = {
        components_values: source.values,
        stream_template_config: child(template, "stream_template"),
        ...sliceVariables(source.slice),
      };
      for (const mapping of children(child(template, "components_resolver"), "components_mapping"))
        apply(context, mapping, stream, variables);
      streams.push(handDown(stream, template["use_parent_parameters"] !== false));
    }
  }
  return streams;
}

async function* sources(context: Context, resolver: Component): AsyncGenerator<Source> {
  const type = typeOf(resolver);
  if (type === "HttpComponentsResolver") {
    const component = child(resolver, "retriever");
    const retriever = lookupOf(context, component);
    for await (const { values: partition, extra, parts } of partitionsOf(context, routersOf(component))(parent)) {
      const slice = { ...emptySlice, partition, extra };
      for await (const page of retriever.pages(slice, parts, undefined, () => false))
        for (const values of page) yield { values, slice };
    }
  } else for (const values of written(context, resolver)) yield { values, slice: emptySlice };

  async function* parent(component: Component): ReturnType<ReadParent> {
    for await (const event of streamOf(context, component, 1).read())
      if (event.type === "records") for (const record of event.records) yield { record, partition: event.partition };
  }
}

function* written(context: Context, resolver: Component): Generator<Record<string, unknown>> {
  const type = typeOf(resolver);
  if (type === "ConfigComponentsResolver") {
    const choices = children(resolver, "stream_config").map((stream) => {
      const pointer = list(stream["configs_pointer"]).map((part) => text(context, stream, part));
      return [...list(dpathOne(context.config, pointer)), ...list(stream["default_values"])];
    });
    yield* combined(choices);
  } else if (type === "ParametrizedComponentsResolver") {
    const parameters = optionalChild(resolver, "stream_parameters");
    for (const each of list(parameters?.["list_of_parameters_for_stream"]))
      yield isRecord(each) ? each : { value: each };
  } else refuseCustom(resolver);
}

// Each of one list with each of the others, as the reference has it; so are the names of what is no object.
function* combined([first, ...others]: readonly (readonly unknown[])[], at = 0): Generator<Record<string, unknown>> {
  for (const [index, each] of (first ?? []).entries()) {
    const values = isRecord(each) ? each : { value: each, [`source_config_${at}`]: [index, each] };
    if (others.length === 0) yield values;
    else for (const more of combined(others, at + 1)) yield { ...values, ...more };
  }
}

function apply(context: Context, mapping: Component, stream: Record<string, unknown>, variables: Variables): void {
  const path = list(mapping["field_path"]).map((part) => text(context, mapping, part, variables));
  const test = optionalText(mapping, "condition");
  if (test && !condition(context, mapping, test, variables)) return;
  const kind = optionalText(mapping, "value_type");
  const value =
    kind === "string"
      ? text(context, mapping, mapping["value"], variables)
      : parsed(native(context, mapping, mapping["value"], variables));
  if (!replaceAt(stream, path, value) && mapping["create_or_update"] === true) setAt(stream, path, value);
}

// A value may be written as JSON or YAML, where a component or a list is meant.
function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (/^(true|false)$/i.test(value)) return /^true$/i.test(value);
  if (!/^\s*[[{-]|:\s/.test(value)) return value;
  try {
    const found: unknown = parse(value, { maxAliasCount: 100 });
    return typeof found === "object" && found !== null ? found : value;
  } catch {
    return value;
  }
}
