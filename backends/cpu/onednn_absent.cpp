// Owns: the answers of a build without oneDNN's headers; compiled only then.
#include <cstddef>

#include "backends/cpu/onednn.h"

namespace graphlift::cpu {
namespace {

std::nullptr_t absent(std::string* why) {
  if (why) *why = "built without oneDNN's headers (pip install onednn-devel-cpu-gomp, then build again)";
  return nullptr;
}

}  // namespace

std::unique_ptr<const Contraction> make_onednn_contraction(const ContractionSpec&, std::string* why) {
  return absent(why);
}
std::unique_ptr<const Contraction> make_onednn_swapped(const ContractionSpec&, std::string* why) { return absent(why); }
std::unique_ptr<const Contraction> make_onednn_packed(const ContractionSpec&, std::unique_ptr<const Contraction>,
                                                      std::string* why) {
  return absent(why);
}
bool onednn_packs_in_blocks() { return false; }
std::unique_ptr<const Convolution> make_onednn_convolution(const ConvolutionSpec&, std::string* why) {
  return absent(why);
}

}  // namespace graphlift::cpu
