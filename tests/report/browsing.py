"""What is asked of every page in a real browser."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the driver's pipes
]
OPTIONS = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []

OVERFLOWS = """() => {
  const found = [];
  for (const item of document.querySelectorAll('h1,h2,h3,p,li,summary,pre,figcaption,svg,td,th,button,input,select')) {
    const box = item.getBoundingClientRect();
    const scrolls = item.parentElement.closest('.wide,.tall,pre,.grid-svg');
    if (!scrolls && box.width && box.right > document.documentElement.clientWidth + 1)
      found.push(item.tagName + ': ' + item.textContent.slice(0, 60));
  }
  for (const text of document.querySelectorAll('svg.chart text')) {
    const svg = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
    if (box.width && (box.right > svg.right + 1 || box.left < svg.left - 1)) found.push('svg: ' + text.textContent);
  }
  for (const group of document.querySelectorAll('svg .bg-op, svg .bg-queue')) {
    const box = group.querySelector('rect').getBoundingClientRect();
    for (const text of group.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.width && (own.right > box.right + 1 || own.bottom > box.bottom + 1)) found.push('op: ' + text.textContent);
    }
  }
  for (const item of document.querySelectorAll('body *')) {  // cut, and no way to scroll there
    const style = getComputedStyle(item);
    if (style.overflowX === 'hidden' && item.scrollWidth > item.clientWidth + 1 && !item.matches('.grid-svg, .grid-svg *'))
      found.push('cut: ' + item.className);
  }
  return found;
}"""
"""What sticks out of its box or of the page, where nothing scrolls."""

CONTRAST = """() => {
  const parse = text => {
    const [r, g, b, a = 1] = (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return [r, g, b, text === 'none' || text === 'transparent' ? 0 : a];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = rgb => rgb.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const page = item => {  // what stands behind an element of HTML
    const layers = [];
    for (; item; item = item.parentElement) layers.push(parse(getComputedStyle(item).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const drawn = text => {  // and behind a text of a picture: the boxes of its group on those of its panel
    const groups = [], svg = text.ownerSVGElement;
    for (let group = text.parentElement; group && group !== svg; group = group.parentElement) groups.unshift(group);
    let below = page(svg);
    for (const group of groups)
      for (const rect of group.querySelectorAll(':scope > rect')) {
        const at = rect.getBBox(), own = text.getBBox();
        if (own.x < at.x - 1 || own.x > at.x + at.width || own.y > at.y + at.height || own.y + own.height < at.y) continue;
        const style = getComputedStyle(rect), fill = parse(style.fill);
        below = over([...fill.slice(0, 3), fill[3] * parseFloat(style.fillOpacity)], below);
      }
    return below;
  };
  const poor = [];
  const judge = (what, a, b) => {
    const [x, y] = [light(over(a, b)), light(b)], ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
    if (ratio < 4.5) poor.push(`${what}: ${ratio.toFixed(2)}`);
  };
  for (const item of document.querySelectorAll('main *, aside *')) {
    if (!item.getClientRects().length || ![...item.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const style = getComputedStyle(item);
    if (item.closest('script, style, title, option')) continue;
    const name = `${item.tagName} ${item.textContent.trim().slice(0, 40)}`;
    if (item.closest('svg')) judge(name, parse(style.fill), drawn(item.closest('text')));
    else judge(name, parse(style.color), page(item));
  }
  for (const item of document.querySelectorAll('main input[type=search]'))
    judge('placeholder', parse(getComputedStyle(item, '::placeholder').color), page(item));
  const probe = document.createElement('i');
  document.body.append(probe);
  const colour = name => { probe.style.color = `var(${name})`; return parse(getComputedStyle(probe).color); };
  for (let i = 0; i < 10; i++) judge(`--ink on --k${i}`, colour('--ink'), colour(`--k${i}`));
  judge('--soft on --line', colour('--ink'), colour('--line'));
  probe.remove();
  return poor;
}"""
"""Texts whose contrast against what stands behind them is under 4.5 to 1; the colours of timelines too."""


@contextmanager
def opened(browser, file, width=1400, scheme="light"):
    """A page, offline; whatever it complains of or asks the network for fails."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if file.name not in request.url else None)
    page.goto(file.as_uri())
    settled(page)
    yield page
    settled(page)
    assert complaints == []
    context.close()


def settled(page):
    """Wait until what is open is unpacked and drawn."""
    page.wait_for_function("!document.querySelector('details[open] > script.packed')")
    page.evaluate("Promise.all([...document.querySelectorAll('details[open]')].map(part => part.ready))")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def opens_all(page):
    """Open everything that can be opened."""
    for _ in range(3):  # parts within parts
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        page.wait_for_timeout(30)
        settled(page)


def problems(page, width):
    """What is too wide, cut or hard to read."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    return [f"{wide} wide"] * (wide > width) + page.evaluate(OVERFLOWS) + page.evaluate(CONTRAST)
