// What is alive in a page: parts that unpack when they are opened, and what is chosen, which the tables, pictures and
// timelines of a scope (an epoch, a netlist) show alike.

// ------------------------------------------------------------------------------------------------ packed parts
const unpack = async part => {
  const script = part.querySelector(':scope > script.packed');
  if (!script) return part.ready;
  script.remove();
  const bytes = Uint8Array.from(atob(script.textContent), letter => letter.charCodeAt(0));
  const body = make('div', 'body');
  part.ready = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text().then(html => {
    body.innerHTML = html;
    part.append(body);
    enliven(body);
  });
  return part.ready;
};
const enliven = root => {
  root.querySelectorAll('.table').forEach(liveTable);
  root.querySelectorAll('.grid-view').forEach(gridView);
  root.querySelectorAll('.timeline').forEach(timeline);
  root.querySelectorAll('figure.map').forEach(errorMap);
  root.querySelectorAll('details').forEach(part => {
    part.addEventListener('toggle', () => { if (part.open) unpack(part); });
    if (part.open) unpack(part);
  });
};

// ------------------------------------------------------------------------------------------------ what is chosen
const panel = make('aside', 'chosen');
panel.hidden = true;
panel.setAttribute('aria-live', 'polite');
const scopeOf = item => item.closest('.scope') || document.body;
const choose = (name, from, {show = '', toggles = true} = {}) => {
  const scope = scopeOf(from);
  if (scope.dataset.chosen === name && toggles) name = '';
  scope.dataset.chosen = name;
  const producers = new Set(), consumers = new Set();
  for (const edge of scope.querySelectorAll('.bg-edge')) {
    if (edge.dataset.to === name) producers.add(edge.dataset.from);
    if (edge.dataset.from === name) consumers.add(edge.dataset.to);
  }
  scope.querySelectorAll('.grid-view').forEach(view => view.mark && view.mark(name, producers, consumers));
  scope.querySelectorAll('.timeline').forEach(view => view.mark && view.mark(name, new Set([...producers, ...consumers])));
  scope.querySelectorAll('tr[data-name], .dot, .yaml [data-name]').forEach(item => item.classList.toggle('here', Boolean(name) && item.dataset.name === name));
  tell(name, scope, producers, consumers);
  for (const item of scope.querySelectorAll('tr.here, .yaml .here')) {  // within its own list, never the page
    const list = item.closest('.tall');
    const [a, b] = list ? [item.getBoundingClientRect(), list.getBoundingClientRect()] : [];
    if (list && (a.top < b.top + 30 || a.bottom > b.bottom)) list.scrollTop += a.top - b.top - list.clientHeight / 2;
  }
  if (show) scope.querySelector(show)?.scrollIntoView({block: 'center'});
};
const tell = (name, scope, producers, consumers) => {
  panel.hidden = !name;
  document.body.classList.toggle('telling', Boolean(name));
  if (!name) return;
  panel.textContent = '';
  const head = make('div', 'bar'), close = make('button', '', '×');
  close.type = 'button';
  close.title = 'close (Esc)';
  close.onclick = () => choose('', scope);
  head.append(make('b', '', name), close);
  panel.append(head);
  const row = scope.querySelector(`.ops tr[data-name="${CSS.escape(name)}"]`);
  if (row) {
    const heads = [...row.closest('table').querySelectorAll('th')].map(item => item.textContent);
    const facts = make('p', 'soft');
    facts.textContent = [...row.cells].slice(1).map((cell, i) => `${heads[i + 1]} ${cell.textContent}`).join(' · ');
    panel.append(facts);
  }
  for (const [what, css, names] of [['reads', 'from', producers], ['feeds', 'to', consumers]]) {
    if (!names.size) continue;
    const line = make('p', 'near ' + css, what + ' ');
    for (const other of names) {
      const button = make('button', '', other);
      button.type = 'button';
      button.onclick = () => choose(other, scope);
      line.append(button, ' ');
    }
    panel.append(line);
  }
  const line = scope.querySelector(`.yaml [data-name="${CSS.escape(name)}"]`);
  if (line) {
    const text = make('pre', '', line.textContent), go = make('button', '', line.dataset.place);
    text.tabIndex = 0;
    go.type = 'button';
    go.title = 'show the lines around it';
    go.onclick = () => { line.closest('details').open = true; line.closest('.tall').scrollTop = line.offsetTop - 60; line.closest('details').scrollIntoView(); };
    panel.append(go, text);
  }
};
document.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || panel.hidden) return;
  for (const scope of document.querySelectorAll('[data-chosen]')) if (scope.dataset.chosen) choose('', scope);
});
document.addEventListener('chosen', event => {
  const known = name => scopeOf(event.target).querySelector(`.grid-view [data-name="${CSS.escape(name)}"]`);
  const name = [event.detail, ...event.detail.replace(/^.*: /, '').split(' > ')].find(known);
  if (name) choose(name, event.target, {toggles: false});
});
document.addEventListener('click', event => {
  const item = event.target.closest('.yaml [data-name], .dot');
  if (item) choose(item.dataset.name, item, item.matches('.dot') ? {show: '.ops .table', toggles: false} : {});
});

// --------------------------------------------------------------------------------- from the head of a page to a part
const open = async id => {
  const part = document.getElementById(id);
  if (!part) return null;
  part.open = true;
  await unpack(part);
  return part;
};
const finder = box => {
  const index = JSON.parse(box.querySelector('script').textContent), input = box.querySelector('input'), list = box.querySelector('.found');
  const go = async ([name, , id]) => {
    const part = await open(id);
    if (!part) return;
    list.textContent = '';
    choose(name, part.querySelector('.scope') || part, {show: '.grid-view', toggles: false});
  };
  input.oninput = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    list.textContent = '';
    if (!words.length) return;
    const hits = index.filter(item => words.every(word => `${item[0]} ${item[1]} ${item[2]}`.toLowerCase().includes(word)));
    for (const hit of hits.slice(0, 30)) {
      const button = make('button', '', hit[0]);
      button.type = 'button';
      button.append(make('span', 'soft', ` ${hit[1]}, ${hit[3]}`));
      button.onclick = () => go(hit);
      list.append(button);
    }
    list.append(make('span', 'soft', hits.length > 30 ? `and ${hits.length - 30} more` : hits.length ? '' : 'nothing found'));
  };
  input.onkeydown = event => { if (event.key === 'Enter') list.querySelector('button')?.click(); };
};
const toHash = async () => {
  const part = location.hash.length > 1 && await open(decodeURIComponent(location.hash.slice(1)));
  if (part) part.scrollIntoView();
};
document.body.append(panel);
enliven(document.body);
document.querySelectorAll('.finder').forEach(finder);
addEventListener('hashchange', toHash);
toHash();
