/* Rows of large tables come column by column, each text once (packed.py); the table is given whole rows. */
(function () {
  "use strict";
  const SEPARATOR = " · ";

  function reader(column) {
    if (Array.isArray(column)) { return (i) => column[i]; }
    if ("one" in column) { return () => column.one; }
    const { words, at } = column;
    return (i) => (Array.isArray(at[i]) ? at[i].map((word) => words[word]).join(SEPARATOR) : words[at[i]]);
  }

  function rows(packed) {
    const columns = Object.entries(packed.columns).map(([name, column]) => [name, reader(column)]);
    return Array.from({ length: packed.count }, (_, i) => {
      const row = {};
      for (const [name, value] of columns) { row[name] = value(i); }
      return row;
    });
  }

  /* All rows, or what changed in them: the other one stays as it is. */
  function unpack(sent) {
    const { no_update } = window.dash_clientside;
    if (!sent) { return [no_update, no_update]; }
    if (sent.columns) { return [rows(sent), no_update]; }
    return [no_update, { add: rows(sent.add), update: rows(sent.update), remove: sent.remove.map((id) => ({ id })) }];
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.flopwatch = Object.assign(window.dash_clientside.flopwatch || {}, { unpack });
})();
