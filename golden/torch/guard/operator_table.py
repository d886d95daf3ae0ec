"""A table of PyTorch's operators by name: those that multiply and sum.

`golden.torch.guard.other_operators` has the others, `golden.torch.guard.operator_kinds` reads both. The names come from
PyTorch's registry, by namespace, without the overload and without the ``_`` of a variant that works in place.

A product sums products of elements of tensors: matrix products, convolutions, attention, recurrent layers, solvers and
factorisations, Fourier transforms, distances (by a matrix product where PyTorch finds that quicker). `addr` is one: it
multiplies, and adds to a third tensor. `to_mkldnn` counts as one: TorchScript multiplies its result without an
operator. `outer`, `ger` and `kron` are not in it, for they sum nothing. Nor are norms, variances, normalisations,
losses and pooling, which are fp32 by the contract; resampling (`grid_sampler`, `upsample`), which weighs neighbours by
position; gates of recurrent cells (`_thnn_fused_...`), which are elementwise.

The table leaves out operators that PyTorch itself marks as pointwise, as a reduction of one tensor or as a copy of a
view. It also leaves out compositions of other operators, which the guard sees one by one. A test fails when the
installed PyTorch has an operator beyond this.
"""

PRODUCTS = {
    "_native": """
        _foreach_mm_native_0 _foreach_mm_native_1 bmm_triton_0 linalg_polar_native_2 linalg_polar_out_native_3
    """,
    "_quantized": """
        _wrapped_quantized_linear_prepacked conv2d conv2d_relu conv3d conv3d_relu conv_transpose1d conv_transpose2d
        linear linear_dynamic wrapped_fbgemm_linear_fp16_weight wrapped_quantized_linear
    """,
    "aten": """
        _addmm_activation _cdist_backward _cdist_forward _cholesky_solve_helper _compute_linear_combination
        _conv_depthwise2d _convolution _convolution_double_backward _convolution_mode _cslt_sparse_mm
        _cslt_sparse_mm_search _cudnn_attention_backward _cudnn_attention_forward
        _cudnn_attention_forward_no_dropout_inplace _cudnn_rnn _cudnn_rnn_backward _dyn_quant_matmul_4bit
        _efficient_attention_backward _efficient_attention_forward _embedding_bag_per_sample_weights_backward
        _euclidean_dist _fft_c2c _fft_c2r _fft_r2c _flash_attention_backward _flash_attention_forward
        _flash_attention_forward_no_dropout_inplace _foreach_mm _grouped_mm _int_mm _linalg_det _linalg_eigh
        _linalg_eigvals _linalg_slogdet _linalg_solve_ex _linalg_svd _lstm_mps _lu_with_info _mixed_dtypes_linear
        _mps_convolution _mps_convolution_transpose _native_multi_head_attention _nnpack_spatial_convolution
        _scaled_addmm _scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps
        _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
        _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
        _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
        _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
        _scaled_dot_product_fused_attention_overrideable _scaled_dot_product_fused_attention_overrideable_backward
        _scaled_grouped_mm _scaled_grouped_mm_v2 _scaled_mm _scaled_mm_v2 _slow_conv2d_backward _slow_conv2d_forward
        _sparse_addmm _sparse_mm _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward _sparse_semi_structured_addmm
        _sparse_semi_structured_linear _sparse_semi_structured_mm _sparse_sparse_matmul _spsolve
        _transformer_encoder_layer_fwd _trilinear _triton_multi_head_attention _triton_scaled_dot_attention
        _weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros _weight_int8pack_mm
        _wrapped_quantized_linear_prepacked addbmm addmm addmv addr affine_grid_generator affine_grid_generator_backward
        baddbmm bilinear bmm cdist chain_matmul cholesky cholesky_inverse cholesky_solve conv1d conv2d conv3d
        conv_depthwise3d conv_tbc conv_tbc_backward conv_transpose1d conv_transpose2d conv_transpose3d convolution
        convolution_backward convolution_backward_overrideable convolution_overrideable corrcoef cov cross
        cudnn_affine_grid_generator cudnn_affine_grid_generator_backward cudnn_convolution cudnn_convolution_add_relu
        cudnn_convolution_relu cudnn_convolution_transpose det dot einsum fbgemm_linear_fp16_weight
        fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
        fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2
        fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn geqrf gru gru_cell hspmm inner inverse
        istft linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cross linalg_det linalg_eig linalg_eigh
        linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor
        linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex
        linalg_lu_solve linalg_matmul linalg_matrix_exp linalg_matrix_power linalg_matrix_rank linalg_matrix_sqrth
        linalg_multi_dot linalg_pinv linalg_polar linalg_qr linalg_slogdet linalg_solve linalg_solve_ex
        linalg_solve_triangular linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vecdot linear
        linear_backward logdet lstm lstm_cell lstm_mps_backward lu_solve matmul matmul_backward matrix_exp
        matrix_exp_backward matrix_power miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
        miopen_convolution_transpose miopen_depthwise_convolution miopen_rnn miopen_rnn_backward mkldnn_convolution
        mkldnn_linear mkldnn_linear_backward mkldnn_linear_backward_input mkldnn_linear_backward_weights
        mkldnn_rnn_layer mkldnn_rnn_layer_backward mm mps_convolution_backward mps_convolution_transpose_backward mv
        nuclear_norm orgqr ormqr pinverse qr quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell
        quantized_rnn_relu_cell quantized_rnn_tanh_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
        scaled_dot_product_attention slogdet slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d
        slow_conv_transpose2d slow_conv_transpose3d smm sparse_sampled_addmm sspaddmm stft svd tensordot thnn_conv2d
        to_mkldnn triangular_solve vdot
    """,
    "inductor": """
        _mm_plus_mm quack_symmetric_mm
    """,
    "mkl": """
        _mkl_linear
    """,
    "mkldnn": """
        _convolution_pointwise _convolution_transpose_pointwise _linear_pointwise
    """,
    "mkldnn_prepacked": """
        conv2d_run
    """,
    "onednn": """
        linear_dynamic_fp16 linear_relu_dynamic_fp16 qconv1d_pointwise qconv2d_pointwise qconv3d_pointwise
        qconv_pointwise qlinear_pointwise
    """,
    "onnx": """
        Attention RotaryEmbedding
    """,
    "onnx_symbolic": """
        _symbolic _symbolic_multi_out
    """,
    "prepacked": """
        conv2d_clamp_run conv2d_transpose_clamp_run linear_clamp_run
    """,
    "prims": """
        fft_c2c fft_c2r fft_r2c svd
    """,
    "quantized": """
        conv1d conv1d_dynamic conv1d_relu conv2d conv2d_add conv2d_add_relu conv2d_dynamic conv2d_relu conv3d
        conv3d_dynamic conv3d_relu conv_transpose1d conv_transpose1d_dynamic conv_transpose2d conv_transpose2d_dynamic
        conv_transpose3d conv_transpose3d_dynamic linear linear_dynamic linear_dynamic_fp16
        linear_dynamic_fp16_unpacked_weight linear_leaky_relu linear_relu linear_relu_dynamic linear_relu_dynamic_fp16
        linear_tanh linear_with_input_q_dq_qweight_dq_output_fp32 linear_with_input_q_dq_qweight_dq_relu_output_fp32
        matmul quantized_gru_cell_dynamic quantized_lstm_cell_dynamic quantized_rnn_relu_cell_dynamic
        quantized_rnn_tanh_cell_dynamic
    """,
    "sparse": """
        qlinear qlinear_dynamic qlinear_relu qlinear_relu_dynamic
    """,
    "symm_mem": """
        _async_input_mm fused_all_gather_matmul fused_all_gather_scaled_matmul fused_matmul_reduce_scatter
        fused_scaled_matmul_reduce_scatter
    """,
    "torch_attn": """
        _varlen_attn _varlen_attn_backward _varlen_attn_out
    """,
    "torch_nn": """
        _linear_cross_entropy_batch_chunked _linear_cross_entropy_batch_chunked_no_reduction
    """,
}
