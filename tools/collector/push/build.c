/* SPDX-License-Identifier: MIT */
/* Send what the collector is to know of a build: the names of its functions, and its kit. */
#include "push/push_inside.h"

static hotfn_status put_for_build(pushing *p, const char *path, byte_buffer *query,
                                  const byte_buffer *body)
{
    http_answer answer = { 0 };

    buffer_append(query, "", 1);
    hotfn_status status = query->failed || body->failed
                              ? push_fail(p->err, HOTFN_E_NO_MEMORY, "not enough memory")
                              : push_put_body(p, &answer, path, (const char *)query->data, body);
    if (status == HOTFN_OK && push_is_temporary(answer.status)) {
        status = push_describe_delay(p, &answer);
    } else if (status == HOTFN_OK && answer.status / 100 != 2) {
        status = push_refuse_answer(p, &answer);
    }
    buffer_free(&answer.body);
    buffer_free(query);
    return status;
}

static hotfn_status check_image(const hotfn_image *image, hotfn_image_info *out, hotfn_error *err)
{
    if (!image || hotfn_image_get_info(image, out) != HOTFN_OK || out->id_bytes == 0) {
        return push_fail(err, HOTFN_E_OPTION, "the image has no id: link it with -Wl,--build-id");
    }
    return HOTFN_OK;
}

hotfn_status hotfn_push_build(const hotfn_image *image, const char *file,
                              const hotfn_functions *functions, const hotfn_push_options *options,
                              const hotfn_env *env, hotfn_error *err)
{
    hotfn_push_result own = HOTFN_PUSH_RESULT_INIT;
    pushing p = { .options = options, .result = &own, .err = err };
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    byte_buffer body = { 0 }, query = { 0 };
    hotfn_status status = push_check_options(options, err);

    status = status ? status : check_image(image, &info, err);
    if (status == HOTFN_OK && (!file || !functions)) {
        status = push_fail(err, HOTFN_E_OPTION, "the functions of the build are missing");
    }
    if (status != HOTFN_OK) {
        return status;
    }
    push_append_parameter(&query, "app", options->app && options->app[0] ? options->app : file);
    push_append_parameter(&query, "register", "1");
    if (options->version && options->version[0]) {
        push_append_parameter(&query, "version", options->version);
    }
    wire_encode_functions(&body, &info, file, functions, env);
    status = put_for_build(&p, "/api/v1/names", &query, &body);
    buffer_free(&body);
    return status;
}

hotfn_status hotfn_push_kit(const hotfn_image *image, const char *file, const void *archive,
                            uint64_t byte_count, const hotfn_push_options *options,
                            hotfn_error *err)
{
    hotfn_push_result own = HOTFN_PUSH_RESULT_INIT;
    pushing p = { .options = options, .result = &own, .err = err };
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    byte_buffer query = { 0 };
    const byte_buffer body = { .data = (uint8_t *)(uintptr_t)archive, .used = (size_t)byte_count };
    char id[80];
    hotfn_status status = push_check_options(options, err);

    status = status ? status : check_image(image, &info, err);
    if (status == HOTFN_OK && (!file || !archive)) {
        status = push_fail(err, HOTFN_E_OPTION, "the archive of the kit is missing");
    }
    if (status != HOTFN_OK) {
        return status;
    }
    wire_format_image(id, info.id_kind, info.id, info.id_bytes);
    push_append_parameter(&query, "app", options->app && options->app[0] ? options->app : file);
    push_append_parameter(&query, "build", id);
    return put_for_build(&p, "/api/v1/kit", &query, &body);
}
