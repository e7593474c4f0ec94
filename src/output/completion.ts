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

// What takes a value before noun and verb: the value is none of them.
const withValue = ["--output", "--url", "--root"];

// The path is what stands before the cursor without options, at most noun and verb. Bash makes words of `--root=x` of its own.
function bash(completions: readonly Completion[]): string {
  const cases = completions.map(
    ({ path, words, options }) =>
      `    ${JSON.stringify(path.join(" "))}) words=${JSON.stringify(words.map(({ name }) => name).join(" "))}; options=${JSON.stringify(options.join(" "))} ;;`,
  );
  return `# bash completion of magic: eval "$(magic completion bash)"
_magic() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" options="" word value=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [ "$word" = "=" ]; then value=1; continue; fi
    if [ -n "$value" ]; then value=""; continue; fi
    case "$word" in ${withValue.join("|")}) value=1 ;; -*) ;; *) path="\${path:+$path }$word" ;; esac
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
    const described = words.map(({ name, summary }) =>
      quote(summary === "" ? name : `${name}:${summary.replaceAll(":", "\\:")}`),
    );
    return `      ${quote(path.join(" "))}) words_=(${described.join(" ")}); options_=(${options.join(" ")}) ;;`;
  });
  return `#compdef magic
# zsh completion of magic: eval "$(magic completion zsh)", or as the file _magic in a folder of $fpath
_magic() {
  local -a words_ options_ path_
  local word value
  for word in \${words[2,CURRENT-1]}; do
    if [[ -n $value ]]; then value=""; continue; fi
    case $word in ${withValue.join("|")}) value=1 ;; -*) ;; *) path_+=($word) ;; esac
  done
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
if [[ $funcstack[1] == _magic ]]; then _magic "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _magic magic
fi`;
}

function fish(completions: readonly Completion[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = completions.flatMap(({ path, words, options }) => {
    const at = `-n ${quote(`__magic_at ${path.join(" ")}`.trim())}`;
    // Behind a verb come its arguments, and options still.
    const under = words.length > 0 ? at : `-n ${quote(`__magic_under ${path.join(" ")}`)}`;
    return [
      ...words.map(({ name, summary }) => `complete -c magic -f ${at} -a ${quote(name)} -d ${quote(summary)}`),
      ...options.map((option) => `complete -c magic ${under} -l ${quote(option.replace(/^--/, ""))}`),
    ];
  });
  return `# fish completion of magic: magic completion fish | source
function __magic_path
  set -l value
  for word in (commandline -opc)[2..-1]
    if test -n "$value"
      set value
    else if contains -- $word ${withValue.join(" ")}
      set value 1
    else if not string match -q -- '-*' $word
      echo $word
    end
  end
end
function __magic_at
  set -l given (__magic_path)
  test "$given" = "$argv"
end
function __magic_under
  set -l given (__magic_path)
  set given $given[1..(count $argv)]
  test "$given" = "$argv"
end
${lines.join("\n")}`;
}
