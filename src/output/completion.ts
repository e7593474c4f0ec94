// Completion scripts: what may follow each path of words, in the language of each shell.

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** What may follow `magic <path>`. */
export interface Completion {
  readonly path: readonly string[];
  readonly words: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly string[];
}

export function completionScript(shell: Shell, completions: readonly Completion[]): string {
  return { bash, zsh, fish }[shell](completions);
}

// The path is what stands before the cursor without options, at most noun and verb.
function bash(completions: readonly Completion[]): string {
  const cases = completions.map(
    ({ path, words, options }) =>
      `    ${JSON.stringify(path.join(" "))}) words=${JSON.stringify(words.map(({ name }) => name).join(" "))}; options=${JSON.stringify(options.join(" "))} ;;`,
  );
  return `# bash completion of magic: eval "$(magic completion bash)"
_magic() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" options="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${cases.map((line) => `  ${line}`).join("\n")}
    esac
    [ -n "$options" ] && break
    case "$path" in *" "*) path="\${path% *}" ;; *) break ;; esac
  done
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  esac
  [ \${#COMPREPLY[@]} -eq 0 ] && compopt -o default 2>/dev/null
}
complete -F _magic magic`;
}

function zsh(completions: readonly Completion[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const cases = completions.map(({ path, words, options }) => {
    const described = words.map(({ name, summary }) => quote(`${name}:${summary.replaceAll(":", "\\:")}`));
    return `      ${quote(path.join(" "))}) words_=(${described.join(" ")}); options_=(${options.join(" ")}) ;;`;
  });
  return `#compdef magic
# zsh completion of magic: eval "$(magic completion zsh)"
_magic() {
  local -a words_ options_ path_
  local word
  for word in \${words[2,CURRENT-1]}; do [[ $word == -* ]] || path_+=($word); done
  while :; do
    case "\${(j: :)path_}" in
${cases.join("\n")}
    esac
    (( \${#options_} || ! \${#path_} )) && break
    path_=(\${path_[1,-2]})
  done
  if [[ \${words[CURRENT]} == -* ]]; then compadd -- $options_
  elif (( \${#words_} )); then _describe command words_
  else _files; fi
}
compdef _magic magic`;
}

function fish(completions: readonly Completion[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = completions.flatMap(({ path, words, options }) => {
    const when = `-n ${quote(`__magic_at ${path.join(" ")}`.trim())}`;
    return [
      ...words.map(({ name, summary }) => `complete -c magic -f ${when} -a ${quote(name)} -d ${quote(summary)}`),
      ...options.map((option) => `complete -c magic ${when} -l ${quote(option.replace(/^--/, ""))}`),
    ];
  });
  return `# fish completion of magic: magic completion fish | source
function __magic_at
  set -l given (commandline -opc | string match -v -r '^-')
  test "$given[2..-1]" = "$argv"
end
${lines.join("\n")}`;
}
