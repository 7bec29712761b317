#!/usr/bin/env bash
# Proofs for scripts/proof.sh, which reads this file, whose oracle is a library of Python.

# Its Python has scikit-learn, whose digits the networks are trained on.
proof_quantise() {
  scripts/deps.sh test
  cmake --preset release
  cmake --build build/release -j "$(scripts/jobs.sh)" --target hone hone-builder
  scripts/models.sh build/release/models
  local venv=build/release/quantise-venv
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/models/requirements.txt scikit-learn sympy
  "$venv/bin/python" tests/quantise/proof.py --hone build/release/bin/hone \
    --models build/release/models --work build/release/quantise "$@"
}

# Tests of the backend with all networks, then the table of operators, which --write makes anew.
proof_torch() {
  local build=build/release
  scripts/deps.sh test
  cmake --preset release -DHONE_BUILD_TESTS=ON
  cmake --build "$build" -j "$(scripts/jobs.sh)" --target hone hone-builder hone-runner \
    hone_runtime_shared write_test_package
  scripts/models.sh "$build/models" mlp
  scripts/torch.sh "$build/venv" transformers==5.24.0
  "$build/venv/bin/python" -c "import torch, transformers" || {
    echo "proof.sh torch: pip has no PyTorch here (above)" >&2
    return 1
  }
  "$build/venv/bin/python" tests/python/python_test.py --source . --build "$build" --part torch --whole \
    --write-package "$build/tests/write_test_package" --python "$build/venv/bin/python"
  HONE_BIN=$build/bin "$build/venv/bin/python" tests/python/torch_operators.py "$@"
}
