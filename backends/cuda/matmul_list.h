// Owns: the implementations of products, as matmul.cpp's list and the measurements know them. Must not: choose.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/matmul.h"

namespace graphlift::cuda {

// By cuBLASLt, with the algorithm that its heuristics name first. Null: `why`.
std::unique_ptr<const Matmul> make_lt_matmul(const MatmulSpec& spec, std::string* why);
// The first `most` of its heuristics.
std::vector<std::unique_ptr<const Matmul>> make_lt_matmuls(const MatmulSpec& spec, int most, std::string* why);
// With the algorithm of a name; null: not one of this library's, or not for this spec.
std::unique_ptr<const Matmul> make_lt_matmul_named(const MatmulSpec& spec, const std::string& name);

// By torch's kernels: a product, and one more kernel for each thing that it can't do at once.
std::unique_ptr<const Matmul> make_torch_matmul(const MatmulSpec& spec);
inline constexpr const char* kTorchMatmul = "torch";

}  // namespace graphlift::cuda
