'use strict';
// Names cut to a number of characters so that names which differ still differ: in the middle, or, where that leaves the
// same, around what distinguishes them.
const shortNames = names => {
  const all = [...new Set(names)], bySize = new Map();
  const middle = (name, most) => {
    const tail = Math.floor((most - 1) / 2);
    return name.slice(0, most - 1 - tail) + '…' + name.slice(name.length - tail);
  };
  const shared = group => {  // characters that all have in common from the start
    const least = Math.min(...group.map(name => name.length));
    let count = 0;
    while (count < least && group.every(name => name[count] === group[0][count])) count++;
    return count;
  };
  const around = (name, most, before) => {  // its start, the part where the names begin to differ, and its end
    if (most < 5) return name.slice(before, before + most);
    const head = Math.min(before, Math.floor((most - 2) / 3)), tail = Math.floor((most - 2 - head) / 2);
    const room = most - 2 - head - tail, start = Math.min(before, name.length - tail - room);
    if (start <= head + 1) return name.slice(0, most - 1 - tail) + '…' + name.slice(name.length - tail);
    if (start + room + 1 >= name.length - tail) return name.slice(0, head) + '…' + name.slice(head + 1 - most);
    return name.slice(0, head) + '…' + name.slice(start, start + room) + '…' + name.slice(name.length - tail);
  };
  const tableOf = most => {
    const table = new Map(), alike = new Map();
    for (const name of all) {
      const short = name.length <= most ? name : middle(name, most);
      table.set(name, short);
      if (alike.has(short)) alike.get(short).push(name); else alike.set(short, [name]);
    }
    const separate = (group, rounds) => {
      const before = shared(group), alikeStill = new Map();
      for (const name of group) {
        table.set(name, around(name, most, before));
        const short = table.get(name);
        if (alikeStill.has(short)) alikeStill.get(short).push(name); else alikeStill.set(short, [name]);
      }
      for (const rest of alikeStill.values()) if (rest.length > 1 && rounds && rest.length < group.length) separate(rest, rounds - 1);
    };
    for (const group of alike.values()) if (group.length > 1) separate(group.filter(name => name.length > most), 8);
    return table;
  };
  return (name, most) => {
    if (name.length <= most) return name;
    if (!bySize.has(most)) bySize.set(most, tableOf(most));
    return bySize.get(most).get(name) ?? middle(name, most);
  };
};
