/** Small facts about this installation that must outlive a restart: seeds, ids, markers. */
export interface SettingTable {
  readonly key: string;
  readonly value: string;
}

export interface SettingTables {
  readonly setting: SettingTable;
}
