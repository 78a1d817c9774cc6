"""What a kernel costs to compile by two ways: CUDA C++ through NVRTC, and LLVM's text through llvmlite and the driver.

    python bench/ptx_against_nvrtc.py

The same two kernels written both ways, an element-wise chain and sums of rows by warps, without functions that only
libdevice has. Milliseconds, the least of ten: of NVRTC up to a cubin; of LLVM up to PTX, and of
the driver up to a loaded kernel. Without a GPU the driver's part is left out.
"""

import ctypes
import itertools
import time

import llvmlite.binding as binding

from graphlift import nvrtc

ARCHITECTURE = "sm_90"

CHAIN_CUDA = """
extern "C" __global__ void __launch_bounds__(256) chain(const float4* a, const float4* b, float4* c, unsigned n) {
  for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
    const float4 x = a[i], y = b[i];
    float4 z;
    float v = x.x * y.x + 1.0f; z.x = v / (1.0f + v * v);
    v = x.y * y.y + 1.0f; z.y = v / (1.0f + v * v);
    v = x.z * y.z + 1.0f; z.z = v / (1.0f + v * v);
    v = x.w * y.w + 1.0f; z.w = v / (1.0f + v * v);
    c[i] = z;
  }
}
"""
ROWS_CUDA = """
extern "C" __global__ void __launch_bounds__(256) rows(const float4* a, float* c, unsigned n) {
  const unsigned row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (unsigned i = lane; i < n; i += 32) {
    const float4 x = a[row * n + i];
    sum += (x.x + x.y) + (x.z + x.w);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) c[row] = sum;
}
"""
HEAD = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
"""
CHAIN_LLVM = """
define ptx_kernel void @chain(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %first = mul i32 %block, 256
  %start = add i32 %first, %tid
  %step = mul i32 %blocks, 256
  %any = icmp ult i32 %start, %n
  br i1 %any, label %body, label %done
body:
  %i = phi i32 [ %start, %entry ], [ %next, %body ]
  %at = zext i32 %i to i64
  %pa = getelementptr <4 x float>, ptr addrspace(1) %a, i64 %at
  %pb = getelementptr <4 x float>, ptr addrspace(1) %b, i64 %at
  %pc = getelementptr <4 x float>, ptr addrspace(1) %c, i64 %at
  %x = load <4 x float>, ptr addrspace(1) %pa, align 16
  %y = load <4 x float>, ptr addrspace(1) %pb, align 16
  %xy = fmul contract <4 x float> %x, %y
  %v = fadd contract <4 x float> %xy, splat (float 1.0)
  %vv = fmul contract <4 x float> %v, %v
  %under = fadd contract <4 x float> %vv, splat (float 1.0)
  %z = fdiv <4 x float> %v, %under
  store <4 x float> %z, ptr addrspace(1) %pc, align 16
  %next = add i32 %i, %step
  %more = icmp ult i32 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}
"""
STEP = """
  %o{step} = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %s{before}, i32 {step}, i32 31)
  %s{step} = fadd float %s{before}, %o{step}"""
JOINED = "".join(STEP.format(step=step, before=2 * step if step < 16 else "") for step in (16, 8, 4, 2, 1))
ROWS_LLVM = f"""
define ptx_kernel void @rows(ptr addrspace(1) %a, ptr addrspace(1) %c, i32 %n) {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %block, 8
  %warp = udiv i32 %tid, 32
  %lane = urem i32 %tid, 32
  %row = add i32 %first, %warp
  %begin = mul i32 %row, %n
  %any = icmp ult i32 %lane, %n
  br i1 %any, label %body, label %end
body:
  %i = phi i32 [ %lane, %entry ], [ %next, %body ]
  %sum = phi float [ 0.0, %entry ], [ %added, %body ]
  %place = add i32 %begin, %i
  %at = zext i32 %place to i64
  %pa = getelementptr <4 x float>, ptr addrspace(1) %a, i64 %at
  %x = load <4 x float>, ptr addrspace(1) %pa, align 16
  %x0 = extractelement <4 x float> %x, i32 0
  %x1 = extractelement <4 x float> %x, i32 1
  %x2 = extractelement <4 x float> %x, i32 2
  %x3 = extractelement <4 x float> %x, i32 3
  %low = fadd float %x0, %x1
  %high = fadd float %x2, %x3
  %four = fadd float %low, %high
  %added = fadd float %sum, %four
  %next = add i32 %i, 32
  %more = icmp ult i32 %next, %n
  br i1 %more, label %body, label %end
end:
  %s = phi float [ 0.0, %entry ], [ %added, %body ]{JOINED}
  %writes = icmp eq i32 %lane, 0
  br i1 %writes, label %write, label %done
write:
  %out = zext i32 %row to i64
  %pc = getelementptr float, ptr addrspace(1) %c, i64 %out
  store float %s1, ptr addrspace(1) %pc
  br label %done
done:
  ret void
}}
"""
KERNELS = {"chain": (CHAIN_CUDA, CHAIN_LLVM), "rows": (ROWS_CUDA, ROWS_LLVM)}


def least(function, runs=10):
    times, result = [], None
    for _ in range(runs):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, result


def by_nvrtc(library, text):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={ARCHITECTURE}".encode())
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    assert library.nvrtcCompileProgram(program, 1, options) == 0
    assert library.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert library.nvrtcGetCUBIN(program, code) == 0
    assert library.nvrtcDestroyProgram(ctypes.byref(program)) == 0
    return code


def ptx_machine():
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
        cpu=ARCHITECTURE, features="+ptx80", opt=3
    )


def by_llvm(machine, text):
    module = binding.parse_assembly(HEAD + text)
    return machine.emit_assembly(module)


def driver():
    """The driver with a context of the first GPU, or None."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        ready = (
            library.cuInit(0) == 0
            and library.cuDeviceGet(ctypes.byref(device), 0) == 0
            and library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
            and library.cuCtxSetCurrent(context) == 0
        )
    except OSError:
        return None
    return library if ready else None


def load(library, code):
    module = ctypes.c_void_p()
    assert library.cuModuleLoadData(ctypes.byref(module), code) == 0
    assert library.cuModuleUnload(module) == 0


def renamed(ptx, name):
    """The text with another name each time, since the driver remembers what it translated."""
    return (ptx.replace(name, f"{name}_{i}").encode() + b"\0" for i in itertools.count())


def main():
    compilers = [ctypes.CDLL(path) for path in nvrtc.candidates()[:1]]
    machine, gpu = ptx_machine(), driver()
    print(f"{'kernel':8} {'NVRTC':>8} {'load':>8} {'LLVM':>8} {'driver, PTX':>12}")
    for name, (cuda, llvm) in KERNELS.items():
        times = [float("nan")] * 4
        if compilers:
            times[0], cubin = least(lambda text=cuda: by_nvrtc(compilers[0], text))
            if gpu:
                times[1], _ = least(lambda code=cubin: load(gpu, code))
        times[2], ptx = least(lambda text=llvm: by_llvm(machine, text))
        if gpu:
            code = renamed(ptx, name)
            times[3], _ = least(lambda code=code: load(gpu, next(code)))
        print(f"{name:8} " + " ".join(f"{t:8.2f}" for t in times))


if __name__ == "__main__":
    main()
