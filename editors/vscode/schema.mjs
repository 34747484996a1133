// The netlist schema of this repository, for editors without the server.
import { copyFileSync } from "node:fs";

copyFileSync(new URL("../../schemas/netlist.schema.json", import.meta.url), new URL("netlist.schema.json", import.meta.url));
