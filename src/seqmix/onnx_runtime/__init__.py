"""Run taggers that were exported to ONNX, without torch: onnxruntime, tokenizers and numpy."""
