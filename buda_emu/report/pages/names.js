'use strict';
// Names cut to a number of characters so that names which differ still differ: in the middle, or, where that leaves the
// same, around the place where they begin to differ.
const shortNames = names => {
  const all = [...new Set(names)], bySize = new Map();
  const middle = (name, most) => {
    const tail = Math.floor((most - 1) / 2);
    return name.slice(0, most - 1 - tail) + '…' + name.slice(name.length - tail);
  };
  const shared = (a, b) => {  // characters that two names have in common from the start
    let count = 0;
    while (count < a.length && a[count] === b[count]) count++;
    return count;
  };
  const around = (name, most, before, first) => {  // its start, the part from the difference on, and its end
    if (most < 5) return name.slice(before, before + most);
    const head = Math.min(before, first), tail = Math.floor((most - 2 - head) / 2);
    const room = most - 2 - head - tail, start = Math.min(before, name.length - tail - room);
    if (start <= head + 1) return name.slice(0, most - 1 - tail) + '…' + name.slice(name.length - tail);
    if (start + room + 1 >= name.length - tail) return name.slice(0, head) + '…' + name.slice(head + 1 - most);
    return name.slice(0, head) + '…' + name.slice(start, start + room) + '…' + name.slice(name.length - tail);
  };
  const tableOf = most => {
    const table = new Map(), alike = new Map();
    for (const name of all) {
      const short = name.length <= most ? name : middle(name, most);
      if (alike.has(short)) alike.get(short).push(name); else alike.set(short, [name]);
    }
    const used = new Set();
    for (const [short, group] of alike) {
      if (group.length > 1) continue;
      table.set(group[0], short);
      used.add(short);
    }
    for (const [short, group] of alike) {
      if (group.length < 2) continue;
      group.sort();  // the neighbours of a name share most with it
      const least = shared(group[0], group[group.length - 1]);
      group.forEach((name, i) => {
        const places = [least, ...[group[i - 1], group[i + 1]].filter(Boolean).map(other => shared(name, other))].sort((a, b) => a - b);
        const candidates = name.length <= most ? [name] : [];
        for (const first of [Math.floor((most - 2) / 3), 1, 0]) for (const place of places) candidates.push(around(name, most, place, first));
        const choice = candidates.find(candidate => !used.has(candidate)) ?? short;
        table.set(name, choice);
        used.add(choice);
      });
    }
    return table;
  };
  return (name, most) => {
    if (name.length <= most) return name;
    if (!bySize.has(most)) bySize.set(most, tableOf(most));
    return bySize.get(most).get(name) ?? middle(name, most);
  };
};
