// Counts the records of CSV bytes as they pass: line feeds outside quotes. A check on what the reader says that it read.

export class RecordCounter {
  #inside = false;
  #open = false;
  #count = 0;

  take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const quote = chunk.indexOf(34, at);
      const end = quote < 0 ? chunk.length : quote;
      if (!this.#inside) this.#countLines(chunk, at, end);
      if (quote < 0) break;
      this.#inside = !this.#inside;
      this.#open = true;
      at = quote + 1;
    }
  }

  #countLines(chunk: Buffer, from: number, to: number): void {
    let at = from;
    for (;;) {
      const feed = chunk.indexOf(10, at);
      if (feed < 0 || feed >= to) break;
      this.#count++;
      this.#open = false;
      at = feed + 1;
    }
    if (at < to) this.#open = true;
  }

  /** With a last record that no line feed ends. */
  get records(): number {
    return this.#count + (this.#open ? 1 : 0);
  }
}
