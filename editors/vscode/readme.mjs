// The README that is packed: with its pictures inside, as VS Code shows none from files; or, where BUDA_EMU_ADDRESS says
// where this folder can be read, with addresses, as the Marketplace shows none from inside.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";

const here = (name) => new URL(name, import.meta.url);
const address = process.env.BUDA_EMU_ADDRESS?.replace(/\/?$/, "/");
const picture = (name) =>
    address === undefined ? `data:image/png;base64,${readFileSync(here(name)).toString("base64")}` : address + name;

const text = readFileSync(here("README.md"), "utf8");
const packed = text.replace(/(!\[[^\]]*\]\()(pictures\/[\w-]+\.png)\)/g, (_, words, name) => `${words}${picture(name)})`);
mkdirSync(here("out"), { recursive: true });
writeFileSync(here("out/README.md"), packed);
