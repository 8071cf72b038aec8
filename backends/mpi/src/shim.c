/* The MPI constants that are casts or enumerators, which a Rust binding of the header cannot see. Nothing else. */
#include <mpi.h>

void *const tailback_mpi_in_place = MPI_IN_PLACE;
const MPI_Datatype tailback_mpi_byte = MPI_BYTE;
const MPI_Datatype tailback_mpi_double = MPI_DOUBLE;
const MPI_Datatype tailback_mpi_uint64 = MPI_UINT64_T;
const int tailback_mpi_max_error_string = MPI_MAX_ERROR_STRING;
const int tailback_mpi_max_library_version_string = MPI_MAX_LIBRARY_VERSION_STRING;
const int tailback_mpi_max_processor_name = MPI_MAX_PROCESSOR_NAME;
const int tailback_mpi_mode_nocheck = MPI_MODE_NOCHECK;
const int tailback_mpi_tag_ub = MPI_TAG_UB;
const int tailback_mpi_win_model = MPI_WIN_MODEL;
const int tailback_mpi_win_unified = MPI_WIN_UNIFIED;
const int tailback_mpi_err_in_status = MPI_ERR_IN_STATUS;
const int tailback_mpi_err_pending = MPI_ERR_PENDING;
