// Drives VS Code in a browser through what the extension adds: node editor.mjs VSCODE CHROMIUM URL PICTURES. VSCODE has
// playwright-core in driver/; pictures of each step go to a folder. tests/editor/test_extension.py starts it.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";

const [vscode, chrome, url, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(vscode, "driver/package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath: chrome, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.setDefaultTimeout(120_000);

const seen = (text, more = {}) => page.getByText(text, more).first().waitFor();
const shows = (name) => page.screenshot({ path: join(pictures, `${name}.png`) });
const press = async (...keys) => {
    for (const key of keys) {
        await page.keyboard.press(key);
        await page.waitForTimeout(500);
    }
};
const type = async (words) => {
    await page.keyboard.type(words);
    await page.waitForTimeout(1500);
};
const choose = async (key, words) => {
    await press(key);
    await page.keyboard.type(words);
    await page.locator(".quick-input-list .monaco-list-row", { hasText: words }).first().waitFor();
    await press("Enter");
};
const command = (words) => choose("F1", words);
const go = async (place) => {
    await press("Control+g");
    await type(place);
    await press("Enter");
};

try {
    await page.goto(url);
    await page.getByText("Yes, I trust the authors").click();
    await page.getByText("Do you trust the authors").waitFor({ state: "hidden" });
    await choose("Control+p", "attention.yaml");
    await seen("BUDA netlist", { exact: true }); // the language, in the status bar
    await seen("65.0 KiB"); // a hint beside a queue: the server answers
    await shows("opened");

    await go("45:15");
    await type("x");
    await command("Problems: Focus on Problems View");
    await seen("unknown format 'xFloat16_b'");
    await shows("problem");
    await command("View: Focus Active Editor Group");
    await press("Control+.");
    await seen("V010: write Float16_b");
    await shows("fix");
    await press("Enter");
    await seen("No problems have been detected in the workspace.");

    await go("43:10");
    await command("BUDA: Show the Grid Beside the Netlist");
    const grid = page.frameLocator("iframe.webview").frameLocator("iframe");
    await grid.getByText("DRAM channel 0").first().waitFor();
    await shows("grid");
    await press("Control+1");

    await go("60:10");
    await press("F9", "F5");
    await seen("Paused on entry");
    await press("F5");
    await seen("scaled (multiply)");
    await shows("breakpoint");
    await page.getByRole("button", { name: "Step Back" }).first().click();
    await seen("dots (matmul)");
    await press("Control+Shift+y");
    await type("print $p_loop_count + 40\n");
    await seen("42", { exact: true });
    await shows("back");
    await press("Shift+F5");
    assert.equal(await page.locator(".notification-toast").count(), 0);

    await page.keyboard.press("Control+Shift+x");
    await page.locator(".extension-list-item", { hasText: "BUDA netlists" }).first().click();
    const details = page.frameLocator("iframe.webview").last().frameLocator("iframe");
    await details.getByText("What it needs").first().waitFor();
    const widths = await details.locator("img").evaluateAll((all) => all.map((picture) => picture.naturalWidth));
    assert.equal(widths.length, 3);
    assert.ok(Math.min(...widths) > 600, `the README's pictures have widths ${widths}`);
    await shows("details");
} catch (error) {
    await shows("failed");
    throw error;
} finally {
    await browser.close();
}
