// Owns: contractions by the BLAS that torch was built with.
// Must not: carry post-ops other than a bias or an accumulation: BLAS has none.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/contraction.h"

namespace graphlift::cpu {

// Takes a canonical spec that is not empty; null, with the reason, where BLAS has no such product or torch hides it.
std::unique_ptr<const Contraction> make_gemm(const ContractionSpec& spec, std::string* why);

}  // namespace graphlift::cpu
