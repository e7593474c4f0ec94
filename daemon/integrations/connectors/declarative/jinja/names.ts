// What a manifest's templates may name besides the functions: each where it has a meaning, elsewhere it is a missing value.

export const manifestNames: ReadonlySet<string> = new Set([
  ...["config", "parameters", "headers", "response", "request_url", "status_code"],
  ...["record", "property", "path", "raw_schema", "last_record", "last_page_size", "page_size", "next_page_token"],
  ...["stream_slice", "stream_partition", "stream_interval", "stream_state", "session_token"],
  ...["creation_response", "polling_response", "download_target", "components_values", "stream_template_config"],
]);
