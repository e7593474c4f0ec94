// Servers of OpenAI's format that refuse `stream_options`, which the gateway adds to each stream to have it counted. Their streams are counted
// as those without a usage are: by an estimate.

/** Whether a refusal may be for that. */
export function refusesCounting(status: number, body: string): boolean {
  return (status === 400 || status === 422) && /stream_options|include_usage/.test(body);
}
