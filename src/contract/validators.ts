// Whether a document fits the schema of magic.yaml or of contract.yaml. dist has the finished code in this file's place (build.js): to make it
// would cost each start 60 ms.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { ControllerContract } from "./controller.ts";
import { ProjectConfig } from "./project.ts";

export const schemas = { project: ProjectConfig, contract: ControllerContract };

/** For schemas of ours: that they are schemas is tested. */
export const options = {
  ...{ allErrors: true, verbose: true, strict: false },
  ...{ validateFormats: false, validateSchema: false },
};

const ajv = new Ajv2020(options);

export const project: ValidateFunction = ajv.compile(schemas.project);
export const contract: ValidateFunction = ajv.compile(schemas.contract);
