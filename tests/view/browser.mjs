// Drives the viewer's page in a real browser: searches, opens and closes modules, follows edges, and measures how long a
// drawing takes. usage: node browser.mjs PAGE LARGE_PAGE FRAME_PAGE        (PLAYWRIGHT: a folder with playwright-core)
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const require = createRequire(`${process.env.PLAYWRIGHT}/`);
const {chromium} = require('playwright-core');
const [page_path, large_path, frame_path] = process.argv.slice(2);
const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
const page = await browser.newPage({viewport: {width: 1400, height: 900}});
const errors = [], requests = [];
page.on('pageerror', (error) => errors.push(error.message));
page.on('request', (request) => { if (!request.url().startsWith('file:')) requests.push(request.url()); });

const shown = () => page.evaluate(() => window.umbra.shown());
const selected = () => page.evaluate(() => window.umbra.selected());
const heading = () => page.locator('#details h2').textContent();
/// Where something is drawn, on the page.
async function place(name) {
  const at = await page.evaluate((n) => window.umbra.position(n), name);
  assert(at, `${name} is not drawn`);
  const box = await page.locator('#graph').boundingBox();
  return {x: box.x + at.x, y: box.y + at.y};
}
async function click(name, times = 1) {
  await page.waitForTimeout(300);  // movements end
  const at = await place(name);
  await page.mouse.click(at.x, at.y, {clickCount: times});
}
const tests = {
  async 'facts and modules are there'() {
    assert.match(await page.locator('#facts').textContent(), /parameters.*FLOP.*peak memory.*in \[/s);
    assert(await page.locator('#modules .row').count() > 2);
    assert(await page.locator('#memory').isVisible());
  },
  async 'a search finds a call by its operator and shows it'() {
    await page.keyboard.press('/');
    await page.keyboard.type('gelu');
    await page.locator('#found li[data-name^=gelu]').first().waitFor();
    await page.keyboard.press('Enter');
    assert.match(await selected(), /^gelu/);
    assert.match(await page.locator('#details .target').textContent(), /aten\.gelu/);
    assert((await shown()).includes(await selected()));
    assert.match(await page.locator('#source').textContent(), /line \d+/);
  },
  async 'an edge is followed from the details, back and forth'() {
    const from = await selected();
    await page.locator('#inputs .link').first().click();
    const input = await selected();
    assert.notEqual(input, from);
    assert.equal(await heading(), input);
    await page.locator(`#users .link[data-name="${from}"]`).click();
    assert.equal(await selected(), from);
    await page.keyboard.press('ArrowLeft');
    assert.equal(await selected(), input);
  },
  async 'a click on an edge goes to its far end'() {
    await page.waitForTimeout(400);
    const edge = await page.evaluate(() => {
      const {stage} = window.umbra;
      const whole = stage.scene.edges.map((e) => ({source: e.source.name, end: e.ends[0].name, a: stage.to_page(e.points[0]), b: stage.to_page(e.points[e.points.length - 1])}));
      const inside = (p) => p.x > 20 && p.y > 60 && p.x < stage.width - 20 && p.y < stage.height - 20;
      return whole.find((e) => inside(e.a) && inside(e.b) && e.b.y - e.a.y > 15);
    });
    const box = await page.locator('#graph').boundingBox();
    await page.mouse.click(box.x + edge.a.x, box.y + edge.a.y + 3);  // near its beginning
    assert.equal(await selected(), edge.end);
  },
  async 'a double click closes a module and opens it again'() {
    await page.evaluate(() => document.getElementById('fit').click());
    const name = await page.evaluate(() => window.umbra.stage.scene.groups.at(-1).path);
    await page.evaluate((path) => window.umbra.toggle(path), name);
    const closed = await shown();
    const label = await page.evaluate((path) => window.umbra.model.groups.find((g) => g.path === path).name, name);
    assert(closed.includes(label));
    await click(label, 2);
    const open = await shown();
    assert(open.length > closed.length - 1 && !open.includes(label));
  },
  async 'levels are opened and closed by keys'() {
    await page.locator('#graph').focus();
    for (let i = 0; i < 6; ++i) await page.keyboard.press('e');
    const all = (await shown()).length;
    await page.keyboard.press('c');
    assert((await shown()).length < all);
  },
  async 'a point of memory over time selects the call'() {
    const box = await page.locator('#timeline').boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    assert.match(await page.locator('#details').textContent(), /memory in use after it/);
  },
  async 'a selection is an address'() {
    const name = await selected();
    await page.reload();
    assert.equal(await selected(), name);
  },
  async 'it works in a frame of a notebook'() {
    await page.goto(pathToFileURL(frame_path).href);
    const frame = page.frames().at(-1);
    await frame.waitForFunction(() => window.umbra);
    await frame.locator('#search').fill('gelu');
    await frame.locator('#search').press('Enter');
    assert.match(await frame.evaluate(() => window.umbra.selected()), /^gelu/);
  },
  async 'ten thousand calls stay fluid'() {
    const started = Date.now();
    await page.goto(pathToFileURL(large_path).href);
    await page.waitForFunction(() => window.umbra);
    const load = Date.now() - started;
    const calls = await page.evaluate(() => window.umbra.model.root.calls);
    assert(calls >= 10000, `${calls} calls`);
    const times = await page.evaluate(async () => {
      const {umbra} = window, frames = [];
      const measure = async () => {
        for (let i = 0; i < 20; ++i) {
          umbra.stage.pan(3, -7);
          umbra.stage.zoom(i % 2 ? 1.1 : 0.9, 400, 300);
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          frames.push(umbra.stage.drawing_time);
        }
      };
      const first = performance.now();
      await umbra.open_all();
      const layout = performance.now() - first;
      await measure();
      const toggle = performance.now();
      umbra.toggle(umbra.model.groups.filter((g) => g.path && !g.only).at(-1).path);
      return {items: umbra.shown().length, layout, toggle: performance.now() - toggle, frame: frames.sort((a, b) => a - b)[frames.length >> 1], slowest: Math.max(...frames)};
    });
    console.log(`  loads in ${load} ms; everything open: ${times.items} items laid out in ${Math.round(times.layout)} ms; a frame ${times.frame.toFixed(1)} ms, the slowest ${times.slowest.toFixed(1)} ms; a module closed in ${Math.round(times.toggle)} ms`);
    assert(load < 8000 && times.frame < 100, JSON.stringify(times));
    const search = await page.evaluate(() => { const t = performance.now(); document.getElementById('search').value = 'relu'; document.getElementById('search').dispatchEvent(new Event('input')); return performance.now() - t; });
    assert(search < 500, `a search took ${search} ms`);
  },
};

await page.goto(pathToFileURL(page_path).href);
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    assert.deepEqual(errors, []);
    console.log(`ok  ${name}`);
  } catch (error) {
    ++failed;
    console.log(`NOT ${name}: ${error.message}\n${(error.stack || '').split('\n').slice(1, 3).join('\n')}`);
  }
}
assert.deepEqual(requests, [], 'the page asked for something outside');
await browser.close();
process.exit(failed ? 1 : 0);
