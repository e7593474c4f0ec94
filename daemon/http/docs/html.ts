// HTML by template strings: everything that is put in is escaped unless it is HTML already.

export interface Html {
  readonly html: string;
}

type Part = string | number | Html | readonly Part[] | null | undefined | false;

/** Tagged template: `html`<p>${text}</p>``. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: strings.map((text, index) => text + render(parts[index])).join("") };
}

function render(part: Part): string {
  if (part === null || part === undefined || part === false) return "";
  if (Array.isArray(part)) return part.map(render).join("");
  if (typeof part === "object") return (part as Html).html;
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A whole page: no script, no address but this daemon's own. */
export function page(title: string, body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${{ html: style }}</style>
</head>
<body>
<nav><a href="/docs">API</a> <a href="/docs/errors">Errors</a> <a href="/openapi.json">openapi.json</a></nav>
<main>${body}</main>
</body>
</html>
`.html;
}

const style = `
:root { color-scheme: light dark; --edge: color-mix(in srgb, currentColor 18%, transparent) }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem 1.25rem 4rem }
nav a { margin-right: 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem }
details { border: 1px solid var(--edge); border-radius: 6px; margin: .4rem 0; padding: .4rem .75rem }
summary { cursor: pointer } summary code { font-weight: 600 }
code, pre { font: .875rem/1.45 ui-monospace, monospace }
pre { border: 1px solid var(--edge); border-radius: 6px; overflow-x: auto; padding: .75rem }
@media (max-width: 40rem) { code, td { overflow-wrap: anywhere } }
table { border-collapse: collapse; width: 100% } th, td { border-top: 1px solid var(--edge); padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top }
.method { display: inline-block; min-width: 4.2rem } .muted { opacity: .7 }
`;
