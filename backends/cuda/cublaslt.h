// Owns: the functions and numbers of cuBLASLt that are used, found at run time in the library that torch has loaded. No
// header of CUDA is needed. Must not: know products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace graphlift::cuda {

// An algorithm as the library describes it: plain bytes, which the same version of it takes again in another process.
struct LtAlgorithm {
  uint64_t data[8];
};

// cublasLtMatmulHeuristicResult_t.
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

// FUNCTION(name, parameters): what libcublasLt exports. Handles are pointers, enums ints, results 0 when all is well.
#define GRAPHLIFT_CUBLASLT(FUNCTION)                                                                                   \
  FUNCTION(cublasLtCreate, (void**))                                                                                   \
  FUNCTION(cublasLtMatmulDescCreate, (void**, int, int))                                                               \
  FUNCTION(cublasLtMatmulDescDestroy, (void*))                                                                         \
  FUNCTION(cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                                          \
  FUNCTION(cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                                     \
  FUNCTION(cublasLtMatrixLayoutDestroy, (void*))                                                                       \
  FUNCTION(cublasLtMatrixLayoutSetAttribute, (void*, int, const void*, size_t))                                        \
  FUNCTION(cublasLtMatmulPreferenceCreate, (void**))                                                                   \
  FUNCTION(cublasLtMatmulPreferenceDestroy, (void*))                                                                   \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                                    \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*, int, LtHeuristic*, int*)) \
  FUNCTION(cublasLtMatmulAlgoCheck, (void*, void*, void*, void*, void*, void*, const LtAlgorithm*, LtHeuristic*))      \
  FUNCTION(cublasLtMatmul, (void*, void*, const void*, const void*, void*, const void*, void*, const void*,            \
                            const void*, void*, void*, void*, const LtAlgorithm*, void*, size_t, void*))

struct CublasLt {
#define FUNCTION(name, parameters) int(*name) parameters = nullptr;
  GRAPHLIFT_CUBLASLT(FUNCTION)
#undef FUNCTION
  size_t version = 0;
  std::string refusal;  // why it can't be used; empty: it can
};

const CublasLt& cublaslt();  // looked for once

// Numbers of the library's enums, by the names that they have there.
namespace lt {
inline constexpr int kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBfloat16 = 14;  // cudaDataType_t
inline constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;       // cublasComputeType_t
inline constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7,
                     kBiasPointer = 8;  // cublasLtMatmulDescAttributes_t
inline constexpr int kAuxPointer = 11, kAuxPitch = 12, kAuxBatchStride = 13;
inline constexpr int kBatchCount = 5, kBatchStride = 6;  // cublasLtMatrixLayoutAttribute_t
inline constexpr int kMostWorkspace = 1, kReductionSchemes = 3, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7,
                     kAlignmentD = 8;                                     // cublasLtMatmulPreferenceAttributes_t
inline constexpr uint32_t kNoReduction = 0, kReductionInComputeType = 2;  // cublasLtReductionScheme_t
// cublasLtEpilogue_t is made of these, but for one that does nothing.
inline constexpr uint32_t kEpilogueNone = 1, kRelu = 2, kBias = 4, kGelu = 32, kGeluKept = 160, kGeluBackward = 192,
                          kSumsOfB = 512;
}  // namespace lt

}  // namespace graphlift::cuda
