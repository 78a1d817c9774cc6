// Owns: what oneDNN can make here, without its headers: rows of the list of implementations. Where the build had no
// headers, or the process finds no library, each gives null and says so.
// Must not: choose between them.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/contraction.h"
#include "backends/cpu/convolution.h"

namespace graphlift::cpu {

// Each takes a canonical spec that is not empty.
std::unique_ptr<const Contraction> make_onednn_contraction(const ContractionSpec& spec, std::string* why);
// C^T = B^T A^T into a buffer of the thread, then transposed: B is read as it lies, where the kernel would copy it.
std::unique_ptr<const Contraction> make_onednn_swapped(const ContractionSpec& spec, std::string* why);
// B reordered once and kept (ContractionSpec::remember_b); `plain` runs while there is no copy.
std::unique_ptr<const Contraction> make_onednn_packed(const ContractionSpec& spec,
                                                      std::unique_ptr<const Contraction> plain, std::string* why);
// Whether kernels here read a packed B in blocks (AVX-512), which also serves more than a handful of rows; else it is B
// by rows.
bool onednn_packs_in_blocks();

// Sizes fit each other, and no tensor is empty.
std::unique_ptr<const Convolution> make_onednn_convolution(const ConvolutionSpec& spec, std::string* why);

}  // namespace graphlift::cpu
