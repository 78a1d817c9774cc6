// Owns: see aligned_buffer.h.
#include "backends/cpu/aligned_buffer.h"

#include <cstdlib>
#include <new>

namespace graphlift::cpu {

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(aligned(bytes)) {
  data_.reset(std::aligned_alloc(kAlignment, size_));
  if (!data_) throw std::bad_alloc();
}

void AlignedBuffer::Free::operator()(void* it) const { std::free(it); }

}  // namespace graphlift::cpu
