// Completion scripts: what may follow each path of words, in the language of each shell.

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** What may follow `magic <path>`. */
export interface Completion {
  readonly path: readonly string[];
  readonly words: readonly { readonly name: string; readonly summary: string }[];
  /** What is asked from the command line itself when the first argument is completed. */
  readonly names?: string | undefined;
  readonly options: readonly string[];
  /** Of options that take one of a few words, or of what `names` may be. */
  readonly values: Readonly<Record<string, readonly string[] | string>>;
}

/** A list of words for the shell: written down, or asked for. */
function listed(shell: Shell, values: readonly string[] | string): string {
  if (typeof values !== "string") return values.join(" ");
  const live = shell === "fish" ? "(commandline -opc | string match -- --live)" : "$live";
  const ask = `magic completion ${shell} --names ${values} ${live} 2>/dev/null`;
  return shell === "fish" ? `(${ask})` : `$(${ask})`;
}

export function completionScript(shell: Shell, completions: readonly Completion[]): string {
  return { bash, zsh, fish }[shell](completions);
}

// What may stand before an argument and is no option of which the argument would be the value.
const withoutValue = ["--live", "--json", "--quiet", "-q"];

// What takes a value before noun and verb: the value is none of them. Of these a file is one.
const withFile = ["--url", "--root"];
const withValue = ["--output", ...withFile];

// What takes several, with commas in between, and what goes on behind a colon (CONNECTION:OBJECT).
const withList = ["--scopes", "--events", "--models"];
const withColon = ["--source", "--destination"];

// The path is what stands before the cursor without options, at most noun and verb. Bash makes words of `--root=x` and `a:b` of its own.
function bash(completions: readonly Completion[]): string {
  const cases = completions.map(
    ({ path, words, names, options }) =>
      `    ${JSON.stringify(path.join(" "))}) words=${JSON.stringify(words.map(({ name }) => name).join(" "))}; options=${JSON.stringify(options.join(" "))}${names === undefined ? "" : `; names=${names}`} ;;`,
  );
  const values = completions.flatMap(({ path, values }) =>
    Object.entries(values).map(([flag, those]) => {
      const at = path.length === 0 ? `*${JSON.stringify(` ${flag}`)}` : JSON.stringify([...path, flag].join(" "));
      const more = withList.includes(flag) ? "; list=1" : withColon.includes(flag) ? "; end=:" : "";
      return `    ${at}) words="${listed("bash", those)}"${more} ;;`;
    }),
  );
  return `# bash completion of magic: eval "$(magic completion bash)"
_magic() {
  local path="" words="" options="" names="" live="" word value="" all="" list="" end="" last=-1
  local -a line=()
  for word in "\${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [ $last -gt 0 ] && [[ "$word" == :* || "\${line[last]}" == *: ]]; then line[last]+="$word"
    else line+=("$word"); last=$((last + 1)); fi
  done
  local current="\${line[last]}" before="\${line[last-1]}"
  if [ "$current" = "=" ]; then current=""
  elif [ "$before" = "=" ]; then before="\${line[last-2]}"; fi
  for word in "\${line[@]:1:last-1}"; do
    if [ "$word" = "=" ]; then value=1; continue; fi
    if [ -n "$value" ]; then value=""; continue; fi
    case "$word" in ${withValue.join("|")}) value=1 ;; --live) live=--live ;; -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  case "$before" in ${withoutValue.join("|")}) before="" ;; esac
  all="$path"
  while :; do
    case "$path" in
${cases.map((line) => `  ${line}`).join("\n")}
    esac
    [ -n "$options" ] && break
    case "$path" in *" "*) path="\${path% *}" ;; *) break ;; esac
  done
  if [ -n "$names" ] && [ "$path" = "$all" ]; then
    case "$before$current" in -*) ;; *) words="${listed("bash", "$names")}" ;; esac
  fi
  case "$path $before" in
${values.map((line) => `  ${line.trim()}`).join("\n")}
  ${withFile.map((flag) => `*" ${flag}"`).join("|")}) words="" ;;
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) [ -n "$list" ] && value="\${current##*,}" || value="$current"
      COMPREPLY=($(compgen -W "$words" -S "$end" -- "$value"))
      word="\${current%"$value"}"
      COMPREPLY=("\${COMPREPLY[@]/#/$word}") ;;
  esac
  if [ \${#COMPREPLY[@]} -eq 0 ]; then compopt -o default 2>/dev/null
  elif [ -n "$list$end" ]; then compopt -o nospace 2>/dev/null; fi
  COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*:}"}"}")
}
complete -F _magic magic`;
}

function zsh(completions: readonly Completion[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const cases = completions.map(({ path, words, names, options }) => {
    const described = words.map(({ name, summary }) =>
      quote(summary === "" ? name : `${name}:${summary.replaceAll(":", "\\:")}`),
    );
    return `      ${quote(path.join(" "))}) words_=(${described.join(" ")}); options_=(${options.join(" ")})${names === undefined ? "" : `; names_=${names}`} ;;`;
  });
  const values = completions.flatMap(({ path, values }) =>
    Object.entries(values).map(([flag, those]) => {
      const at = path.length === 0 ? `*${quote(` ${flag}`)}` : quote([...path, flag].join(" "));
      const more = withList.includes(flag) ? "; compset -P '*,'" : withColon.includes(flag) ? "; end_=(-S :)" : "";
      return `      ${at}) values_=(${listed("zsh", those)})${more} ;;`;
    }),
  );
  return `#compdef magic
# zsh completion of magic: eval "$(magic completion zsh)", or as the file _magic in a folder of $fpath
_magic() {
  local -a words_ options_ path_ all_ values_ end_
  local word value names_ live before=\${words[CURRENT-1]}
  for word in \${words[2,CURRENT-1]}; do
    if [[ -n $value ]]; then value=""; continue; fi
    case $word in ${withValue.join("|")}) value=1 ;; --live) live=--live ;; -*) ;; *) path_+=($word) ;; esac
  done
  if [[ \${words[CURRENT]} == --*=* ]]; then before=\${words[CURRENT]%%=*}; compset -P '*='; fi
  case $before in ${withoutValue.join("|")}) before="" ;; esac
  all_=($path_)
  while :; do
    case "\${(j: :)path_}" in
${cases.join("\n")}
    esac
    (( \${#options_} || ! \${#path_} )) && break
    path_=(\${path_[1,-2]})
  done
  case "\${(j: :)path_} $before" in
${values.join("\n")}
  esac
  if [[ -n $names_ && "$path_" == "$all_" && $before != -* ]]; then values_=(${listed("zsh", "$names_")}); fi
  case $before in ${withFile.join("|")}) words_=() ;; esac
  if (( \${#values_} )); then compadd $end_ -- $values_
  elif [[ \${words[CURRENT]} == -* ]]; then compadd -- $options_
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
  const lines = completions.flatMap(({ path, words, names, options, values }) => {
    const at = `-n ${quote(`__magic_at ${path.join(" ")}`.trim())}`;
    // Behind a verb come its arguments, and options still.
    const under = words.length > 0 ? at : `-n ${quote(`__magic_under ${path.join(" ")}`)}`;
    return [
      ...words.map(({ name, summary }) => `complete -c magic -f ${at} -a ${quote(name)} -d ${quote(summary)}`),
      ...(names === undefined ? [] : [`complete -c magic -f ${at} -a ${quote(listed("fish", names))}`]),
      ...options.map((option) => {
        const those = values[option] ?? completions[0]?.values[option];
        const file = withFile.includes(option) ? " -r -F" : "";
        const way = withList.includes(option) ? "list" : withColon.includes(option) ? "end" : undefined;
        const words = those === undefined ? "" : listed("fish", those);
        const listedThere =
          those === undefined ? file : ` -x -a ${quote(way === undefined ? words : `(__magic_${way} ${words})`)}`;
        return `complete -c magic ${under} -l ${quote(option.replace(/^--/, ""))}${listedThere}`;
      }),
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
function __magic_list
  set -l given (commandline -ct | string replace -r -- '^--[^=]*=' '' | string replace -r -- '[^,]*$' '')
  string join -- \\n "$given"$argv
end
function __magic_end
  string join -- \\n $argv:
end
${lines.join("\n")}`;
}
