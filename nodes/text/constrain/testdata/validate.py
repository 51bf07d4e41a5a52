"""Reads {"schema": …, "instances": ["JSON text", …]} a line and prints those that the library jsonschema refuses."""
import json, sys
from jsonschema import Draft202012Validator

refused = 0
for line in open(sys.argv[1]):
    case = json.loads(line)
    validator = Draft202012Validator(case["schema"], format_checker=Draft202012Validator.FORMAT_CHECKER)
    for text in case["instances"]:
        try:
            error = next(validator.iter_errors(json.loads(text)), None)
        except ValueError as e:
            error = e
        if error is not None:
            refused += 1
            print(json.dumps(case["schema"])[:300], "|", text[:300], "|", str(getattr(error, "message", error))[:200])
print("refused", refused)
