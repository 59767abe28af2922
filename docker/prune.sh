#!/bin/sh
# Takes out of an environment what a prediction never loads: pip, test suites, headers, type
# stubs, and the parts of pyarrow, onnxruntime, onnx and rdkit that molscore does not use.
# Bytecode stays: with a read-only root it could not be made again, and start-up would pay.
#
#     prune.sh VENV
set -eu
venv=$1
"$venv/bin/python" -m pip uninstall --quiet --yes pip
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
cd "$site"

find . -type d \( -name tests -o -name test \) -prune -exec rm -r {} +
find . -type f \( -name '*.pyi' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.h' \) -delete
rm -rf setuptools setuptools-*.dist-info pkg_resources _distutils_hack distutils-precedence.pth
rm -rf pyarrow/include pyarrow/src
find pyarrow -maxdepth 1 \( -name '*_flight.*so*' -o -name 'libarrow_s3.so*' -o -name '_s3fs.*so' \) -delete
rm -rf onnxruntime/transformers onnxruntime/tools onnxruntime/quantization onnxruntime/datasets
rm -rf rdkit/Contrib rdkit-stubs

# What is left must still load.
"$venv/bin/python" -W error::ImportWarning -c '
import onnx, onnx.numpy_helper, onnxruntime, openpyxl, pandas, pyarrow.parquet, safetensors.numpy
from rdkit.Chem import Descriptors
'
